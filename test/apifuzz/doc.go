// Package apifuzz sends the HTTP server what the OpenAPI document that it serves allows, what it nearly allows, and what it does not
// allow at all: every operation, in open mode and with keys of every role. Whatever comes, the answer is no 5xx, refusals are problems
// of the table, answers are as the document says, nothing hangs and nothing grows (U4, U5, U11, U16, U20, U116).
//
//	FLOWFABRIC_TEST_SEED=7 go test ./test/apifuzz -requests 100000
package apifuzz
