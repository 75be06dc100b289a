package store

import (
	"errors"
	"fmt"
)

// FaultKind says what a failure of the database means for the transaction that met it.
type FaultKind int

// The kinds of fault. All but Unknown mean that nothing was written.
const (
	Broken      FaultKind = iota // this transaction cannot be written as it is: split the batch to find out why
	Conflict                     // a unique key, id or doc is there already: load and decide again
	Stale                        // the dictionary or the projection moved: read it and decide again
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
}

// Error shows kind and cause.
func (f *Fault) Error() string { return fmt.Sprintf("store: %s: %v", f.Kind, f.Err) }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// FaultOf finds the kind of a failure; Broken for anything that is no Fault.
func FaultOf(err error) FaultKind {
	var f *Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	return Broken
}
