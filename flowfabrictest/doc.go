// Package flowfabrictest runs the real engine inside a test: on a real store, in one process, on a clock that only the test
// moves. Nothing sleeps, so a test over days takes milliseconds; and the process can crash at a chosen point, or at every point
// in turn.
//
//	env := flowfabrictest.New(t)
//	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) { flowfabric.Handle(w, Remind, remind) })
//	run, err := Remind.Submit(ctx, env, note, flowfabric.SubmitOptions{Delay: 72 * time.Hour})
//	env.Advance(72 * time.Hour)
//	out, err := run.Result(ctx)
//
// The process that crashes is the engine together with the workers of the environment. The next call that needs it starts it
// again, with its workers, as a supervisor would; pending calls of the test are then repeated with the same key, so that a test
// is written as if there had been no crash.
//
// The package uses the public API, the hooks of the engine and the detection of idle goroutines. It has no rules of the engine
// and no database access: checks read the store through the client.
package flowfabrictest
