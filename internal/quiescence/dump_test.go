package quiescence

import "testing"

func TestWhoWaitsForTheHostsTimersDoesNotStandStill(t *testing.T) {
	t.Parallel()
	for call, idle := range map[string]bool{
		"example.com/engine.(*loop).run(0xc0000b4000)":                                    true,
		"github.com/jackc/pgx/v5/pgconn.(*PgConn).WaitForNotification(0xc0000b4000)":      true,
		"github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).Read(0xc0000b4000)": false,
		"github.com/flowfabric/flowfabric/internal/store/sqlite.beginImmediate(0x1, 0x2)": false,
	} {
		g, ok := parseOne("goroutine 7 [select, 2 minutes labels:{\"quiescence\": \"0xc000012080\"}]:\n" + call + "\n\t/src/x.go:7 +0x2f")
		if !ok || g.idle() != idle || g.family != "0xc000012080" {
			t.Errorf("%s: idle %v, %+v", call, g.idle(), g)
		}
	}
}
