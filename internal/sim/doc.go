// Package sim searches for faults: it runs several engines in one process on one store in memory, under virtual time, and draws everything from one
// seed: what clients, workers and operators do, which call of the store goes on next, how long it takes, and what fails.
//
// A history is a plan of moves. A move begins a command or causes a fault, and then lets some calls of the store go on; how many, and which, is drawn
// too. Every call of the store waits for its turn (port.go), and the next one goes on only when every goroutine of every engine waits for something
// (testing/synctest). So between two calls of the store one engine acts at a time, commands pile up behind a transaction on purpose, and the same
// seed gives the same history.
//
// Afterwards the faults stop, work is finished, and the store is held to what must hold (check.go). A history that fails is shortened by leaving out
// moves (shrink.go).
package sim
