// Package faults holds the nth-call sweep: every operation of the engine is run while its first, second, third, ... call of the
// store fails, before or after it was applied, and is sent again with the same keys until it is answered. Answer, records and
// events must be those of a run without faults. It contains tests alone, and sees the engine from outside.
package faults
