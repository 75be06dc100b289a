// Package flowfabric runs durable work: executions that survive the death of any process. It contains the client and the worker
// but no engine: that is part of the packages sqlite and postgres, or runs in a server.
//
// # A client
//
// The packages sqlite and postgres start the engine inside this process and return a [Client]:
//
//	client, err := sqlite.Open(ctx, "app.db") // or postgres.Open(ctx, "postgres://user@host/db")
//	defer client.Close(ctx)
//
// Importing them starts nothing. A SQLite file has one engine at a time; on Postgres as many processes as you like open the same
// database. The package embedded opens a store by its address, for programs whose users choose the store.
//
// [Connect] returns a Client of the same type for a remote server. The rest of this text applies to both unless it says
// otherwise:
//
//	client, err := flowfabric.Connect("https://flowfabric.example.com", flowfabric.ConnectConfig{APIKey: key})
//
// # Work and its types
//
// A [Kind] names a kind of work and the types of its input and its result. Submitter and handler share the constant, so the types
// always match:
//
//	const ChargeCard flowfabric.Kind[Charge, Receipt] = "charge"
//
//	run, err := ChargeCard.Submit(ctx, client, Charge{Order: "o-17", Cents: 1999}, flowfabric.SubmitOptions{IdempotencyKey: "o-17"})
//	receipt, err := run.Result(ctx)
//
// []byte, string and [Payload] are sent unchanged, [None] means no payload, everything else is JSON. When Submit returns without
// an error the execution is durable. The client generates its id before the first try, so a repeat after a lost answer finds the
// execution instead of creating a second one. SubmitTx and SubmitSQLTx of the stores' packages submit inside your own database
// transaction.
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
// A handler runs at least once. Inside the engine every effect happens exactly once; for effects outside, [Task.EffectKey]
// returns a key that is the same in every attempt of a run, and [Step] stores results, so that a handler that starts again skips
// the steps that are done.
//
// A handler holds a lease, which the worker renews. Its context ends when the lease is lost or revoked, or the execution is
// cancelled or past its deadline; context.Cause returns which ([ErrLeaseLost], [ErrLeaseRevoked], [ErrCancelled], [ErrDeadline],
// [ErrAttemptTimeout], [ErrShuttingDown]). From then on the engine refuses all its commands, however long it keeps running; only
// after ErrShuttingDown is the lease still valid.
//
// The error that a handler returns decides how the attempt ends: nil completes it; any other error fails it, and the [Policy] of
// the execution decides about a retry; [Permanent] forbids one, [RetryAfter] sets its delay, [Category] names the failure. An
// error that wraps [ErrParked], as [Task.Delay] and [Task.HandBack] return it, does not end the attempt.
//
// While it works, a handler can write text, frames and a summary document to the stream of its attempt with [Task.Stream];
// [Run.Frames] follows what the attempts say, until the execution ends.
//
// # Inspection and control
//
// The other calls of a client are in groups: [Client.Executions] lists, counts and returns executions, [Client.Operate] replays,
// holds, revokes and deletes them, one by one or in bulk, [Client.Lanes] and [Client.Workers] control queues and workers,
// [Client.Events] reads the event log, [Client.Admin] manages API keys, namespaces and the audit log. Their options are in package
// ops, their values in package api, of which this package has aliases for those that most programs name. [Client.Work] is the
// worker protocol, package workapi.
//
// # Errors
//
// A refusal is an [*Error] with a stable code. errors.Is compares codes if the target has one, otherwise classes:
//
//	errors.Is(err, flowfabric.ErrNotFound)                                  // any code of the class not_found
//	errors.Is(err, &flowfabric.Error{Code: "idempotency_conflict"})         // this code
//	flowfabric.CodeOf(err) == "execution_not_terminal"                      // the same without errors.Is
//
// A command that changes something has three outcomes: done, refused, unknown. The client repeats a command of unknown outcome
// under the same key until the outcome is known; if it stays unknown for too long the error matches [ErrOutcomeUnknown], and the
// same call may be made again.
package flowfabric
