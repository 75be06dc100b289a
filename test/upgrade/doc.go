// Package upgrade runs a program of the version before beside today's on one store, replaces one by the other under load, and reads what
// programs of earlier versions have stored. It sees the public API alone.
package upgrade
