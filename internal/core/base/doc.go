// Package base holds what everything in core is written with: ids, time, errors and their codes, bounds of texts and numbers, and readers and
// writers of small JSON texts.
//
// It knows no execution, no record and no rule about either. It imports the standard library alone, performs no I/O and reads no clock.
package base
