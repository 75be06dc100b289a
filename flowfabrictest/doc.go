// Package flowfabrictest runs the real engine inside a test: on a real store, in one process, on a clock that only the test
// turns. Nothing sleeps, so a test over days takes milliseconds; and the process may die at a chosen point, once or at every
// point in turn.
//
//	env := flowfabrictest.New(t)
//	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) { flowfabric.Handle(w, Remind, remind) })
//	run, err := Remind.Submit(ctx, env, note, flowfabric.SubmitOptions{Delay: 72 * time.Hour})
//	env.Advance(72 * time.Hour)
//	out, err := run.Result(ctx)
//
// The process that dies is the engine together with the workers of the environment. It is started again by the next call that
// needs it, with its workers, as a supervisor would; calls of the test that were under way are then made again under the same
// key, so that a test is written as if nothing happened.
//
// The package knows the public API, the hooks of the engine and how to tell that goroutines stand still. It knows no rule of the
// engine and no database: what it checks it reads as any client would.
package flowfabrictest
