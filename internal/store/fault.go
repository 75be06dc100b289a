package store

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/flowfabric/flowfabric/internal/core"
)

// FaultKind says what a failure of the database means for the transaction that met it.
type FaultKind int

// The kinds of fault. All but Unknown mean that nothing was written.
const (
	Broken      FaultKind = iota // this transaction cannot be written as it is: split the batch to find out why
	Conflict                     // a unique key, id or doc is there already: load and decide again
	Stale                        // the dictionary or the projection moved, or the database has another incarnation: read it and decide again
	Busy                         // a lock was not had in time
	Retry                        // deadlock or serialization failure: the same again may succeed
	Unavailable                  // the database cannot be reached
	Unknown                      // the connection was lost while committing: it may have happened
)

var faultNames = [...]string{"broken", "conflict", "stale", "busy", "retry", "unavailable", "unknown"}

// String names the kind.
func (k FaultKind) String() string { return faultNames[k] }

// Fault is a failure of the database.
type Fault struct {
	Kind FaultKind
	Err  error
	Held []Lock // of Busy: the rows that other transactions hold, as far as the store can tell
}

// Error shows kind and cause.
func (f *Fault) Error() string { return fmt.Sprintf("store: %s: %v", f.Kind, f.Err) }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// NoRoom is the fault of a database whose disk is full. It is not lacking for long: whoever makes room finds everything as it was.
func NoRoom(err error) error {
	return &Fault{Kind: Unavailable, Err: core.Errorf(core.CodeStoreFull, "the disk of the store is full: %w", err).
		WithRetryAfter(1000).WithHint("make room on the disk of the store")}
}

// FaultOf finds the kind of a failure; Broken for anything that is no Fault.
func FaultOf(err error) FaultKind {
	var f *Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	return Broken
}

// Panicked is a panic that was caught before anything was written.
type Panicked struct {
	What  any
	Stack []byte // of the goroutine, where it was caught
}

// Error shows what the program panicked with.
func (p *Panicked) Error() string { return fmt.Sprintf("panic: %v", p.What) }

// Caught is the error of a function that ends with err, or that a deferred call has recovered: then it is a *Panicked, whatever err is.
func Caught(recovered any, err error) error {
	if recovered == nil {
		return err
	}
	return Recovered(recovered)
}

// Recovered is the error of what a deferred call has recovered.
func Recovered(what any) *Panicked { return &Panicked{What: what, Stack: debug.Stack()} }
