package measure

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

var cluster = pgtest.New(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

func TestLatency_describes_all_values(t *testing.T) {
	t.Parallel()
	var d Durations
	for i := range 1000 {
		d.Add(time.Duration(1000-i) * time.Millisecond)
	}
	l := d.Latency()
	if l.N != 1000 || l.Mean != 500.5 || l.P50 != 501 || l.P95 != 951 || l.P99 != 991 || l.P999 != 1000 || l.Max != 1000 {
		t.Errorf("%+v", l)
	}
	n := 0
	for i, b := range l.Histogram {
		n += b.N
		if i > 0 && b.UpTo <= l.Histogram[i-1].UpTo {
			t.Errorf("buckets are not in order: %v", l.Histogram)
		}
	}
	if n != 1000 || l.Histogram[0] != (Bucket{UpTo: 1, N: 1}) || d.Len() != 1000 {
		t.Errorf("%v", l.Histogram)
	}
	if empty := LatencyOf(nil); empty.N != 0 || empty.Histogram == nil {
		t.Errorf("%+v", empty)
	}
}

func TestSpread_is_the_middle_and_the_ends(t *testing.T) {
	t.Parallel()
	if got := SpreadOf([]float64{5, 1, 3}); got != (Spread{Median: 3, Min: 1, Max: 5, N: 3}) {
		t.Error(got)
	}
	if got := SpreadOf([]float64{4, 1, 3, 2}); got.Median != 2.5 {
		t.Error(got)
	}
	if got := SpreadOf(nil); got != (Spread{}) {
		t.Error(got)
	}
	a, b, c := Spread{Min: 1, Max: 3}, Spread{Min: 3, Max: 4}, Spread{Min: 3.5, Max: 9}
	if !a.Overlaps(b) || !b.Overlaps(a) || a.Overlaps(c) || c.Overlaps(a) {
		t.Error("overlap")
	}
}

func TestThis_process_and_machine_are_seen(t *testing.T) {
	t.Parallel()
	if _, ok := CPU(os.Getpid()); !ok {
		t.Error("no processor time")
	}
	if now, most, ok := RSS(os.Getpid()); !ok || now <= 0 || most < now/2 {
		t.Errorf("memory %d of %d", now, most)
	}
	if h := ThisHost(); h.Cores == 0 || h.OS == "" || Filesystem(t.TempDir()) == "" {
		t.Errorf("%+v", h)
	}
	if _, ok := CPU(-1); ok {
		t.Error("a process that is none has used time")
	}
}

func TestA_fresh_store_on_Postgres_is_a_database_where_the_role_may_and_else_a_schema(t *testing.T) {
	t.Parallel()
	ordinary := cluster.Database(t)
	for url, want := range map[string]string{ordinary: "search_path=ff_bench_", cluster.AdminURL(t, ordinary): "/ff_bench_"} {
		address, remove, err := FreshStore(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(address, want) {
			t.Errorf("%s has no %s", address, want)
		}
		if u, err := UsageOf(t.Context(), address); err != nil || u.Bytes == nil || u.WAL == nil || u.Commits == nil {
			t.Errorf("%+v %v", u, err)
		}
		if s, err := StoreSettings(t.Context(), address); err != nil || s["fsync"] != "on" {
			t.Errorf("%v %v", s, err)
		}
		if cut, err := cutOne(t, address, url); err != nil || cut < 1 {
			t.Errorf("%d connections were cut, %v", cut, err)
		}
		if err := remove(); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), ordinary)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var left int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'ff_bench%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

// cutOne cuts the connections to a fresh store while there is one, and one to its neighbour, which must live.
func cutOne(t *testing.T, address, neighbour string) (cut int, err error) {
	t.Helper()
	var conns [2]*pgx.Conn
	for i, to := range []string{address, neighbour} {
		if conns[i], err = pgx.Connect(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conns[i].Close(context.WithoutCancel(t.Context())) }()
	}
	cut, err = CutConnections(t.Context(), address)
	if conns[0].Ping(t.Context()) == nil {
		t.Error("the connection to the fresh store lives")
	}
	if err := conns[1].Ping(t.Context()); err != nil {
		t.Errorf("the neighbour's connection: %v", err)
	}
	return cut, err
}

func TestA_fresh_SQLite_store_lies_beside_the_named_one(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{dir, dir + "/mine.db"} {
		address, remove, err := FreshStore(t.Context(), "sqlite:"+path)
		if err != nil || !strings.HasPrefix(address, "sqlite:"+dir+"/ff_bench_") {
			t.Fatal(address, err)
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
