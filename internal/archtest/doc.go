// Package archtest keeps the conventions of the project as tests: which package may import which, where SQL and the clock may be
// used, how long a file may become, what must be documented. Each failure says why the rule exists.
//
// It reads the source tree as text and knows nothing of what the code does. Every checker is a function from sources to findings
// and has a test of its own on small examples, so that a checker that can no longer fail is noticed.
package archtest
