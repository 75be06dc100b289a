package store

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// flips calls try with every copy of data in which one bit is another.
func flips(data []byte, try func(at int, damaged []byte)) {
	for at := range data {
		for bit := range 8 {
			damaged := slices.Clone(data)
			damaged[at] ^= 1 << bit
			try(at, damaged)
		}
	}
}

// Of a record every bit counts but the one that says that there is a checksum: without it the checksum is taken for a part of the record,
// which then is too long.
func TestW10_no_bit_of_a_record_or_payload_changes_unseen(t *testing.T) {
	t.Parallel()
	x := admittedExecution()
	row := RowOf(x)
	for name, part := range map[string]func(*Row) *[]byte{
		"origin": func(r *Row) *[]byte { return &r.Origin },
		"state":  func(r *Row) *[]byte { return &r.State },
		"input":  func(r *Row) *[]byte { return &r.Input },
	} {
		flips(*part(&row), func(at int, damaged []byte) {
			broken := row
			*part(&broken) = damaged
			if back, err := broken.Execution(x.Class, nil); base.CodeOf(err) != base.CodeCorruption {
				t.Fatalf("byte %d of the %s is another: read as %s, %v", at, name, show(back), err)
			}
		})
	}
	record := core.LeaseRecord{ExecutionID: x.ID, EndedAt: 5, End: core.EndComplete, Attempt: *x.Attempt, Result: &core.Payload{Data: []byte("result"), Size: 6}}
	lease := HistoryRowOf(&record)
	for name, part := range map[string]func(*HistoryRow) *[]byte{
		"body":   func(r *HistoryRow) *[]byte { return &r.Body },
		"result": func(r *HistoryRow) *[]byte { return &r.Result },
	} {
		flips(*part(&lease), func(at int, damaged []byte) {
			broken := lease
			*part(&broken) = damaged
			if back, err := broken.CheckedResult(x.ID); base.CodeOf(err) != base.CodeCorruption {
				t.Fatalf("byte %d of the %s is another: read as %q, %v", at, name, back, err)
			}
		})
	}
	flips(EncodeCommit(completions(3)), func(at int, damaged []byte) {
		if events, err := DecodeCommit(damaged); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("byte %d of a commit is another: read as %+v, %v", at, events, err)
		}
	})
}

func TestW10_no_bit_of_a_small_record_changes_unseen(t *testing.T) {
	t.Parallel()
	ref := DocRef{Kind: 4, Owner: "x", Key: "k"}
	for name, doc := range map[string]Doc{
		"both": {DocRef: ref, Body: []byte(`{"n":1}`), Data: []byte("data"), ExpiresAt: 7}, "no data": {DocRef: ref, Body: []byte(`{}`)},
		"no body": {DocRef: ref, Data: []byte("data")}, "empty": {DocRef: ref, Body: []byte{}, Data: []byte{}}, "nothing": {DocRef: ref},
	} {
		stored := doc
		stored.Body = doc.StoredBody()
		if back := stored.Unsealed(); !reflect.DeepEqual(doc, back) {
			t.Fatalf("%s: wrote %+v, read %+v", name, doc, back)
		}
		flips(stored.Body, func(at int, damaged []byte) {
			broken := stored
			broken.Body = damaged
			// Where the mark itself is another, the body is taken for one without checksums, and is no JSON.
			if back := broken.Unsealed(); !back.Damaged && !bytes.Equal(back.Body, damaged) {
				t.Fatalf("%s: byte %d is another: read as %+v", name, at, back)
			}
		})
		flips(stored.Data, func(at int, damaged []byte) {
			broken := stored
			broken.Data = damaged
			if back := broken.Unsealed(); !back.Damaged || back.Data != nil || base.CodeOf(back.Whole()) != base.CodeCorruption {
				t.Fatalf("%s: byte %d of the data is another: read as %+v", name, at, back)
			}
		})
	}
}

func TestW10_small_records_without_checksums_are_read_as_they_are(t *testing.T) {
	t.Parallel()
	for _, doc := range []Doc{{Body: []byte(`{"n":1}`), Data: []byte("data\x13")}, {Body: []byte("7")}, {Data: []byte("x")}, {}} {
		if back := doc.Unsealed(); !reflect.DeepEqual(doc, back) {
			t.Errorf("%+v is read as %+v", doc, back)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	for name, size := range map[string]int{"record": 200, "4KiB": 4 << 10, "1MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			data := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				_ = sumOf(data)
			}
		})
	}
}
