package store

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// FaultKind states what a failure of the database means for the transaction.
type FaultKind int

// The kinds of fault. All but Unknown mean that nothing was written.
const (
	Broken      FaultKind = iota // this transaction cannot be written: split the batch to find out why
	Conflict                     // a unique key, id or doc exists already: load and decide again
	Stale                        // the dictionary or the projection has moved, or the database has another incarnation: read it and decide again
	Busy                         // a lock was not acquired in time
	Retry                        // deadlock or serialization failure: the same transaction may succeed when repeated
	Unavailable                  // the database cannot be reached
	Unknown                      // the connection was lost while committing: the commit may have happened
)

var faultNames = [...]string{"broken", "conflict", "stale", "busy", "retry", "unavailable", "unknown"}

// String names the kind.
func (k FaultKind) String() string { return faultNames[k] }

// Fault is a failure of the database.
type Fault struct {
	Kind FaultKind
	Err  error
	Held []Lock // of Busy: the rows that other transactions hold, as far as the store can determine
}

// Error shows kind and cause.
func (f *Fault) Error() string { return fmt.Sprintf("store: %s: %v", f.Kind, f.Err) }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// NoRoom is the fault of a database whose disk is full. The condition is temporary: once there is room, everything continues as before.
func NoRoom(err error) error {
	return &Fault{Kind: Unavailable, Err: base.Errorf(base.CodeStoreFull, "the disk of the store is full: %w", err).
		WithRetryAfter(1000).WithHint("make room on the disk of the store")}
}

// FaultOf returns the kind of a failure; Broken for any error that is not a Fault.
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

// Caught returns the error of a function that ends with err or has panicked: if recovered is not nil, the result is a *Panicked regardless of err.
func Caught(recovered any, err error) error {
	if recovered == nil {
		return err
	}
	return Recovered(recovered)
}

// Recovered returns the error for a recovered panic.
func Recovered(what any) *Panicked { return &Panicked{What: what, Stack: debug.Stack()} }
