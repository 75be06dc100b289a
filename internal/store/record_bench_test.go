package store

import "testing"

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
		if _, err := row.Execution(x.Class); err != nil {
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

func BenchmarkEncodeCommit100(b *testing.B) {
	events := completions(100)
	b.ReportAllocs()
	for b.Loop() {
		_ = EncodeCommit(events)
	}
}

func BenchmarkDecodeCommit100(b *testing.B) {
	data := EncodeCommit(completions(100))
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeCommit(data); err != nil {
			b.Fatal(err)
		}
	}
}
