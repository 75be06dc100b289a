package sqlite

import (
	"strconv"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// room bounds the file to the pages that it has and some more: beyond them SQLite says what it says on a full disk.
func room(t *testing.T, s *Store, more int64) {
	t.Helper()
	c := <-s.writer
	defer func() { s.writer <- c }()
	if c.raw == nil { // given up, because SQLite had rolled back by itself
		if err := s.reconnect(c); err != nil {
			t.Fatal(err)
		}
	}
	var pages int64
	read := func(r row) error { pages = r.Int(0); return nil }
	if err := c.search(t.Context(), "pragma page_count", read, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.raw.Script("pragma max_page_count = " + strconv.FormatInt(pages+more, 10)); err != nil {
		t.Fatal(err)
	}
}

func TestReliability5_a_full_disk_is_told_as_such_and_nothing_is_half_written(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	ref := store.DocRef{Kind: 4, Owner: "x", Key: "k"}
	write := func(size int) error {
		return put(s, store.Want{}, &store.Changes{PutDocs: []store.Doc{{DocRef: ref, Body: []byte("{}"), Data: make([]byte, size)}}})
	}
	if err := write(10); err != nil {
		t.Fatal(err)
	}
	room(t, s, 1)
	if err := write(1 << 20); store.FaultOf(err) != store.Unavailable || base.CodeOf(err) != base.CodeStoreFull {
		t.Fatalf("on a full disk: %v", err)
	}
	found, err := s.Read(t.Context(), store.Want{Docs: []store.DocRef{ref}})
	if err != nil || len(found.Docs[ref].Data) != 10 {
		t.Fatalf("what was there: %d bytes, %v", len(found.Docs[ref].Data), err)
	}
	room(t, s, 1000)
	if err := write(1 << 20); err != nil {
		t.Fatalf("with room again: %v", err)
	}
}
