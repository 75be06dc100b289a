// Package flowfabric runs durable work: executions that survive the death of any process. It contains the client and the worker, and no
// engine: that comes with the packages sqlite and postgres, or runs in a server.
//
// # A client
//
// The packages sqlite and postgres start the engine inside this process and return a [Client]:
//
//	client, err := sqlite.Open(ctx, "app.db") // or postgres.Open(ctx, "postgres://user@host/db")
//	defer client.Close(ctx)
//
// Importing them starts nothing. A SQLite file has one engine at a time; on Postgres as many processes as you like open
// the same database. The package embedded takes the address of a store, for programs that leave the choice to their users.
//
// [Connect] returns the same Client of a server somewhere else. What follows holds for both, except where it says otherwise:
//
//	client, err := flowfabric.Connect("https://flowfabric.example.com", flowfabric.ConnectConfig{APIKey: key})
//
// # Work and its types
//
// A [Kind] names a sort of work together with the types of its input and its result. Submitter and handler share the constant,
// so that they cannot disagree:
//
//	const ChargeCard flowfabric.Kind[Charge, Receipt] = "charge"
//
//	run, err := ChargeCard.Submit(ctx, client, Charge{Order: "o-17", Cents: 1999}, flowfabric.SubmitOptions{IdempotencyKey: "o-17"})
//	receipt, err := run.Result(ctx)
//
// []byte, string and [Payload] travel as they are, [None] is nothing, everything else is JSON. When Submit returns without an
// error the execution is durable. The client mints its id before the first try, so that a repeat after a lost answer finds the
// execution instead of making a second one. SubmitTx and SubmitSQLTx of the stores' packages submit inside your own database transaction.
//
// # A worker
//
// A [Worker] claims work and calls handlers:
//
//	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Concurrency: 32})
//	flowfabric.Handle(w, ChargeCard, func(ctx context.Context, t *flowfabric.Task, in Charge) (Receipt, error) {
//		return flowfabric.Step(ctx, t, "charge", func(ctx context.Context) (Receipt, error) {
//			return bank.Charge(ctx, in, t.EffectKey("bank"))
//		})
//	})
//	err := w.Run(ctx)
//
// A handler runs at least once. Inside the engine every effect happens exactly once; for effects outside, [Task.EffectKey] gives
// a key that is the same in every attempt of a run, and [Step] remembers results, so that a handler that starts again passes
// what it has done.
//
// A handler holds a lease, which the worker renews. Its context ends when the lease is lost, revoked, cancelled or past its
// deadline; context.Cause tells which ([ErrLeaseLost], [ErrLeaseRevoked], [ErrCancelled], [ErrDeadline], [ErrAttemptTimeout],
// [ErrShuttingDown]). From then on the engine accepts nothing from it, however long it keeps running; only after ErrShuttingDown
// the lease still stands.
//
// What a handler returns decides how the attempt ends: nil completes; an error fails, and the [Policy] of the execution decides
// about a retry; [Permanent] forbids one, [RetryAfter] says when, [Category] names the failure. An error that wraps [ErrParked],
// as [Task.Delay] and [Task.HandBack] return it, ends nothing.
//
// # Looking and steering
//
// The groups of a client hold the rest: [Executions] lists, counts and shows, [Operate] replays, holds, revokes, deletes and acts
// on many at once, [Lanes] and [Workers] steer queues and fleet, [Events] follows the log of everything that happened, [Work] is
// the worker protocol itself, [Admin] keeps API keys, namespaces and the audit log.
//
// # Errors
//
// A refusal is an [*Error] with a stable code. errors.Is compares codes when the target has one, else classes:
//
//	errors.Is(err, flowfabric.ErrNotFound)                                  // any code of the class not_found
//	errors.Is(err, &flowfabric.Error{Code: "idempotency_conflict"})         // this code
//	flowfabric.CodeOf(err) == "execution_not_terminal"                      // the same without errors.Is
//
// A command that changes something has three outcomes: done, refused, unknown. The client repeats an unknown one under the same
// key until it knows; if it does not find out in time the error matches [ErrOutcomeUnknown], and the same call may be made again.
package flowfabric
