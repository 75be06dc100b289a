package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/store"
)

// serviceOf names the service that the server is part of if its storage keeps commits below the server: Aurora, AlloyDB or Neon. "" if none.
func (s *Store) serviceOf(ctx context.Context, conn *pgx.Conn) (string, error) {
	var aurora, alloy, neon bool
	err := conn.QueryRow(ctx, s.cold["service"]).Scan(&aurora, &alloy, &neon)
	switch {
	case err != nil:
		return "", err
	case aurora:
		return "Aurora", nil
	case alloy:
		return "AlloyDB", nil
	case neon:
		return "Neon", nil
	default:
		return "", nil
	}
}

// risks names the settings under which an acknowledged commit may be lost. Settings about the server's own files are ignored if a service keeps
// commits below the server.
func risks(service, fsync, pages, commit string) (off []string) {
	for _, one := range []struct {
		name, value string
		files       bool
	}{{"fsync", fsync, true}, {"full_page_writes", pages, true}, {"synchronous_commit", commit, false}} {
		if one.value == "off" && (service == "" || !one.files) {
			off = append(off, one.name+" is off")
		}
	}
	return off
}

// standbys reads which servers can take over, and whether commits wait for them.
func (s *Store) standbys(ctx context.Context, conn *pgx.Conn) (*store.Standbys, error) {
	found := &store.Standbys{}
	var synchronous int
	var names, commit string
	if err := conn.QueryRow(ctx, s.cold["standbys"]).Scan(&found.Count, &synchronous, &names, &commit); err != nil {
		return nil, err
	}
	waits := commit != "local" && commit != "off"
	found.Synchronous = waits && (synchronous > 0 || synchronous < 0 && names != "") // an ordinary role sees that they exist, but no details
	return found, nil
}

// warnOfStandbys logs at the start what a failover may lose.
func (s *Store) warnOfStandbys(ctx context.Context, conn *pgx.Conn) error {
	if s.service != "" {
		return nil
	}
	found, err := s.standbys(ctx, conn)
	if err == nil && found.Count > 0 && !found.Synchronous {
		s.cfg.Logger.Warn("a failover may lose commits: no standby is synchronous", "standbys", found.Count)
	}
	return err
}

// examineStandbys is standbys for Examine. A service does not expose its own standbys.
func (s *Store) examineStandbys(ctx context.Context, conn *pgx.Conn, to *store.Condition) (err error) {
	if s.service == "" {
		to.Standbys, err = s.standbys(ctx, conn)
	}
	return err
}
