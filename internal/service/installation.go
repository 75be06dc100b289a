package service

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) installation() {
	on(s, wire.Whoami, s.whoami)
	on(s, wire.GetInfo, s.info)
	on(s, wire.GetSettings, s.settings)
	on(s, wire.RunDoctor, s.doctor)
	on(s, wire.CheckIntegrity, s.integrity)
	on(s, wire.AcknowledgeRollbacks, s.acknowledgeRollbacks)
	s.handlers[wire.MakeBackup.Operation] = func(ctx context.Context, _ Caller, _, answer any) error {
		return s.backup(ctx, answer.(*wire.Sink))
	}
}

// allRoles are the roles of U122.
var allRoles = []string{"read", "submit", "work", "operate", "admin"}

// whoami returns the identity of the caller (U111).
func (s *Service) whoami(ctx context.Context, c Caller, _ *wire.None) (api.Principal, error) {
	who := api.Principal{Principal: c.Name, KeyID: c.KeyID, Namespaces: c.Namespaces, Roles: allRoles, Open: c.KeyID == "" && !c.Owner}
	if c.Namespaces == nil {
		who.Namespaces = []string{keyring.Everywhere}
	}
	if c.KeyID == "" {
		return who, nil
	}
	k, err := s.engine.APIKey(ctx, engine.Caller{Principal: c.Name}, c.KeyID) // its own, even if the request is restricted further
	if err != nil {
		return api.Principal{}, err
	}
	who.Roles = k.Roles
	return who, nil
}

// info returns version, store, features and limits (U112).
func (s *Service) info(ctx context.Context, _ Caller, _ *wire.None) (api.Info, error) {
	now, err := s.engine.ServerTime(ctx)
	if err != nil {
		return api.Info{}, err
	}
	st := s.engine.Info()
	version, commit := Built()
	info := api.Info{
		Version: version, Commit: commit, API: "v1",
		Store: api.StoreInfo{
			Kind: st.Kind, Version: st.Version, Schema: st.Schema, SchemaName: st.Tables, InstallationID: st.Installation.String(), LogID: st.LogID.String(),
			State: string(s.engine.StoreState(ctx)),
		},
		ServerTime: now.Std(), ClockSkew: s.clock.Now().Sub(now.Std()).Round(time.Millisecond),
		Features: map[string]bool{
			"budgets": true, "console": false, "explain": true, "flows": true, "grants": true, "quotas": true, "schedules": false,
			"streams": true, "waitpoints": true, "webhooks": true,
		},
		Limits: map[string]int64{
			"max_payload_bytes": int64(s.engine.Limits().MaxPayload), "max_bulk_items": base.MaxBulkItems, "max_bulk_bytes": base.MaxBulkBytes,
			"max_work_items": wire.MaxWorkItems, "max_page": core.MaxPage, "max_tags": base.MaxTags, "max_priority": base.MaxPriority,
		},
	}
	maps.Copy(info.Features, s.cfg.Features)
	return info, nil
}

// module is the path under which programs import FlowFabric.
const module = "github.com/flowfabric/flowfabric"

// Built returns version and commit of this module in the running program, as far as the build recorded them.
func Built() (version, commit string) {
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

// settings returns the settings in force (U113).
func (s *Service) settings(context.Context, Caller, *wire.None) (api.Settings, error) {
	return api.Settings{Settings: append([]api.Setting{}, s.cfg.Settings...)}, nil
}

// doctor checks the store and the work in it (U113).
func (s *Service) doctor(ctx context.Context, _ Caller, _ *wire.None) (api.HealthReport, error) {
	all := each(s.engine.Doctor(ctx, engine.DefaultBounds()), func(c engine.Check) api.Check {
		return api.Check{Name: c.Name, State: string(c.State), Detail: c.Detail, Hint: c.Hint}
	})
	if s.cfg.Checks != nil {
		all = append(all, s.cfg.Checks()...)
	}
	return api.NewHealthReport(all...), nil
}

// integrity recomputes counters and indexes from the records (U113).
func (s *Service) integrity(ctx context.Context, _ Caller, _ *wire.None) (api.Integrity, error) {
	found, err := s.engine.Integrity(ctx)
	if err != nil {
		return api.Integrity{}, err
	}
	return api.Integrity{
		OK: len(found.Differences) == 0, Checked: append([]string{}, found.Checked...),
		Differences: some(found.Differences, func(d engine.Difference) api.Difference { return api.Difference(d) }),
	}, nil
}

// acknowledgeRollbacks records that an administrator is aware of the lost commits (R5).
func (s *Service) acknowledgeRollbacks(ctx context.Context, c Caller, r *wire.AcknowledgeRollbacksRequest) (api.Rollbacks, error) {
	found, err := s.engine.AcknowledgeRollbacks(ctx, c.admin(), c.action(r.Body.AdminFields, nil))
	return api.Rollbacks{Rollbacks: each(found, func(r engine.Rollback) api.Rollback {
		return api.Rollback{From: r.From, To: r.To, Incarnation: r.Incarnation, At: r.At.Std()}
	})}, err
}

// backup makes the store write a complete copy to a temporary file and passes that on (U113): if it fails midway, the part passed
// on is not a valid copy.
func (s *Service) backup(ctx context.Context, into *wire.Sink) error {
	dir, err := os.MkdirTemp("", "flowfabric-backup-")
	if err != nil {
		return base.Errorf(base.CodeInternal, "no room for the copy: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "copy.db")
	if err := s.engine.Backup(ctx, path, into.Progress); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return base.Errorf(base.CodeInternal, "the copy cannot be read: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(into.To, file); err != nil {
		return base.Errorf(base.CodeInternal, "the copy cannot be handed on: %w", err)
	}
	return nil
}
