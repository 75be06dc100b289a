// Package storetest defines what a store is: the one suite that every implementation of store.Store must pass unchanged, and benchmarks for any of
// them. It deals with rows only. It must not know SQL, a particular store, or an operation of the domain: executions are built by hand with
// plausible fields, regardless of what commands would do to them.
package storetest

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/store"
)

// Factory opens the store under test.
type Factory struct {
	// Open returns a fresh, empty, migrated store that is closed when the test ends. Required.
	Open func(t *testing.T) store.Store
	// OpenAgain opens the database of s a second time while s stays in use, as another process would. Nil: only one process
	// may have it open.
	OpenAgain func(t *testing.T, s store.Store) store.Store
	// Reopen closes s and opens its database again. Nil: OpenAgain is used, or the tests that need it are skipped.
	Reopen func(t *testing.T, s store.Store) store.Store
	// OwnTx begins a transaction of the user on the database of s, in the form that SubmitTx takes (L88). Nil: the store is not a
	// store.TxSubmitter.
	OwnTx func(t *testing.T, s store.Store) (tx any, commit, rollback func() error)
	// OpenCopy opens a file that Backup wrote. Nil: the store is not a store.Backuper.
	OpenCopy func(t *testing.T, path string) store.Store
	// FailOver opens a fresh store whose database can lose commits. Nil: another factory of the same store covers it.
	FailOver func(t *testing.T) Fallible
}

// Fallible is a store whose database can lose commits, as in a failover to a standby that was behind.
type Fallible struct {
	Store store.Store
	// Mark records the content of the database. Nothing must be in progress meanwhile.
	Mark func()
	// Fall resets the database to that content and returns the store on it: another handle if the old one cannot continue.
	Fall func() store.Store
}

// test is one sentence of the contract, and what a store must support for the test to apply.
type test struct {
	name  string
	run   func(t *testing.T, f Factory)
	needs func(f Factory) bool
}

// The requirements of tests. A store that does not meet one says so by its factory, and the test is skipped; a separate test checks for every store
// that factory and store agree.
func anyStore(Factory) bool    { return true }
func shared(f Factory) bool    { return f.OpenAgain != nil } // several processes, hence row locks
func reopens(f Factory) bool   { return f.OpenAgain != nil || f.Reopen != nil }
func submitsTx(f Factory) bool { return f.OwnTx != nil }
func backsUp(f Factory) bool   { return f.OpenCopy != nil }
func failsOver(f Factory) bool { return f.FailOver != nil }
func sharedTx(f Factory) bool  { return shared(f) && submitsTx(f) }

// Run checks the whole contract against the stores that f opens. Every test opens its own stores and runs in parallel.
func Run(t *testing.T, f Factory) {
	subjects := []struct {
		name  string
		tests []test
	}{
		{"executions", executionTests()},
		{"remembered rows", rememberedTests()},
		{"assumptions", assumedTests()},
		{"atomicity", atomicityTests()},
		{"queue", queueTests()},
		{"blocks", blockTests()},
		{"unreadable rows", unreadableTests()},
		{"panics", panickingTests()},
		{"locks", lockTests()},
		{"late locks", lateLockTests()},
		{"held rows", heldTests()},
		{"dictionary", dictionaryTests()},
		{"rules", ruleTests()},
		{"lanes", laneTests()},
		{"keys", keyTests()},
		{"history", historyTests()},
		{"counters", counterTests()},
		{"docs", docTests()},
		{"timers", timerTests()},
		{"inbox", inboxTests()},
		{"outcomes", outcomeTests()},
		{"log", logTests()},
		{"log index", logIndexTests()},
		{"search", searchTests()},
		{"reads", readTests()},
		{"incarnations", incarnationTests()},
		{"upkeep", upkeepTests()},
	}
	for _, subject := range subjects {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			for _, one := range subject.tests {
				if !one.needs(f) {
					continue
				}
				t.Run(one.name, func(t *testing.T) {
					t.Parallel()
					one.run(t, f)
				})
			}
		})
	}
}
