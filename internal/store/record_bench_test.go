package store

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
)

func BenchmarkRowOf(b *testing.B) {
	x := runningExecution()
	b.ReportAllocs()
	b.SetBytes(int64(len(RowOf(x).State)))
	for b.Loop() {
		_ = RowOf(x)
	}
}

func BenchmarkExecution(b *testing.B) {
	x := runningExecution()
	row := RowOf(x)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := row.Execution(x.Class, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChangedRowOf(b *testing.B) {
	x := runningExecution()
	b.ReportAllocs()
	for b.Loop() {
		_ = ChangedRowOf(x)
	}
}

func BenchmarkHistoryRowOf(b *testing.B) {
	record := runCycle(b, 1).records[0]
	b.ReportAllocs()
	for b.Loop() {
		_ = HistoryRowOf(&record)
	}
}

// BenchmarkCycle has what core does in a cycle of one execution, events included.
func BenchmarkCycle(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = runCycle(b, 1)
	}
}

func BenchmarkEncodeCommit(b *testing.B) {
	onCommits(b, func(b *testing.B, events []core.Event) {
		for b.Loop() {
			_ = EncodeCommit(events)
		}
		b.ReportMetric(float64(len(EncodeCommit(events)))/float64(len(events)), "stored-B/event")
	})
}

func BenchmarkDecodeCommit(b *testing.B) {
	onCommits(b, func(b *testing.B, events []core.Event) {
		data := EncodeCommit(events)
		for b.Loop() {
			if _, err := DecodeCommit(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// onCommits measures a lone command and the batches of a busy engine.
func onCommits(b *testing.B, measure func(b *testing.B, events []core.Event)) {
	one, many := runCycle(b, 1), runCycle(b, 100)
	for _, commit := range []struct {
		name   string
		events []core.Event
	}{
		{"submitted/1", one.submitted},
		{"completed/1", one.completed},
		{"submitted/100", many.submitted},
		{"acquired/100", many.acquired},
		{"completed/100", many.completed},
	} {
		b.Run(commit.name, func(b *testing.B) {
			b.ReportAllocs()
			measure(b, commit.events)
		})
	}
}
