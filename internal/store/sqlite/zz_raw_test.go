package sqlite

import (
	"fmt"
	"testing"
	"crypto/rand"
)

func BenchmarkRaw(b *testing.B) {
	for _, n := range []int{100, 500} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			texts := map[string]string{
				"begin": "begin immediate", "commit": "commit",
				"insert": "insert into job(id, class, state, prio, at, payload) values (?, ?, 0, ?, ?, ?)",
				"claim":  "update job set state = 1, lease = ?, expires = ? where id in (select id from job where state = 0 and class = ? order by prio, id limit ?) returning id, payload",
				"complete": "update job set state = 2, result = ? where id = ? and lease = ?",
			}
			c, err := connect(file(b), texts, "journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 4000", "cache_size = -65536")
			if err != nil { b.Fatal(err) }
			defer c.close()
			if err := c.raw.Script("create table job(id blob primary key, class integer, state integer, prio integer, at integer, payload blob, lease blob, expires integer, result blob) strict, without rowid; create index ready on job(class, prio, id) where state = 0"); err != nil { b.Fatal(err) }
			must := func(err error) { if err != nil { b.Fatal(err) } }
			seq := int64(0)
			payload := []byte("input")
			for b.Loop() {
				must(c.run("begin"))
				for range n {
					seq++
					id := make([]byte, 16)
					rand.Read(id[6:])
					id[0],id[1],id[2],id[3],id[4],id[5] = 0,0,byte(seq>>24), byte(seq>>16), byte(seq>>8), byte(seq)
					must(c.run("insert", id, int64(1), seq, seq, payload))
				}
				must(c.run("commit"))
				must(c.run("begin"))
				lease := []byte("0123456789abcdef")
				var ids [][]byte
				must(c.each("claim", func(r row) error { ids = append(ids, r.Bytes(0)); return nil }, lease, seq, int64(1), int64(n)))
				must(c.run("commit"))
				must(c.run("begin"))
				for _, id := range ids { must(c.run("complete", []byte("result"), id, lease)) }
				must(c.run("commit"))
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
