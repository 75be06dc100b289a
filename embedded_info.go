package flowfabric

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/store"
)

// module is the path under which programs import this package.
const module = "github.com/flowfabric/flowfabric"

func (e embeddedAdmin) Info(ctx context.Context) (Info, error) {
	now, err := e.client.engine.ServerTime(ctx)
	if err != nil {
		return Info{}, publicError(err)
	}
	st := e.client.engine.Info()
	_, canCopy := e.client.store.(store.Backuper)
	_, canJoin := e.client.store.(store.TxSubmitter)
	version, commit := built()
	return Info{
		Version: version, Commit: commit, API: "v1",
		Store: StoreInfo{
			Kind: st.Kind, Version: st.Version, Schema: st.Schema, InstallationID: st.Installation.String(), LogID: st.LogID.String(),
			State: string(e.client.engine.StoreState(ctx)),
		},
		ServerTime: now.Std(), ClockSkew: e.client.clock.Now().Sub(now.Std()).Round(time.Millisecond),
		Features: map[string]bool{
			"backup": canCopy, "transactional_submit": canJoin,
			"budgets": true, "console": false, "explain": true, "flows": true, "grants": true, "quotas": true, "schedules": false,
			"streams": false, "waitpoints": true, "webhooks": false,
		},
		Limits: map[string]int64{
			"max_payload_bytes": int64(e.client.engine.Limits().MaxPayload), "max_bulk_items": core.MaxBulkItems, "max_bulk_bytes": core.MaxBulkBytes,
			"max_work_items": maxWorkItems, "max_page": core.MaxPage, "max_tags": core.MaxTags, "max_priority": core.MaxPriority,
		},
	}, nil
}

// built tells version and commit of this module in the running program, as far as its build noted them.
func built() (version, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	if info.Main.Path != module {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version, ""
			}
		}
		return "", ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = setting.Value
		}
	}
	return info.Main.Version, commit
}

// allRoles are the roles of U122.
var allRoles = []string{"read", "submit", "work", "operate", "admin"}

func (e embeddedAdmin) Whoami(ctx context.Context) (Identity, error) {
	p, ok := principal.From(ctx)
	if !ok {
		return Identity{Principal: e.client.principal, Namespaces: e.client.namespaces, Roles: allRoles}, nil
	}
	who := Identity{Principal: p.Name, KeyID: p.KeyID, Namespaces: p.Namespaces, Roles: allRoles, Open: p.KeyID == ""}
	if p.Namespaces == nil {
		who.Namespaces = []string{core.Everywhere}
	}
	if p.KeyID == "" {
		return who, nil
	}
	k, err := e.client.engine.APIKey(ctx, engine.Caller{Principal: p.Name}, p.KeyID) // its own, however the request is narrowed
	if err != nil {
		return Identity{}, publicError(err)
	}
	who.Roles = k.Roles
	return who, nil
}

func (e embeddedAdmin) Integrity(ctx context.Context) (IntegrityReport, error) {
	found, err := e.client.engine.Integrity(ctx)
	if err != nil {
		return IntegrityReport{}, publicError(err)
	}
	report := IntegrityReport{OK: len(found.Differences) == 0, Checked: found.Checked}
	for _, d := range found.Differences {
		report.Differences = append(report.Differences, Difference(d))
	}
	return report, nil
}

// Backup lets the store write a whole copy to a temporary file and hands that on: what was handed on when it fails is no copy.
func (e embeddedAdmin) Backup(ctx context.Context, w io.Writer, o ...BackupOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "flowfabric-backup-")
	if err != nil {
		return newError(core.CodeInternal, "no room for the copy: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "copy.db")
	if err := e.client.engine.Backup(ctx, path, options.Progress); err != nil {
		return publicError(err)
	}
	file, err := os.Open(path)
	if err != nil {
		return newError(core.CodeInternal, "the copy cannot be read: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(w, file); err != nil {
		return newError(core.CodeInternal, "the copy cannot be handed on: %w", err)
	}
	return nil
}
