package inprocess

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// settingsOf returns the settings passed to Open, and the defaults of the rest.
func settingsOf(given flowfabric.EngineConfig, on Store, e *engine.Engine) []api.Setting {
	used, kind := e.Config(), e.Info().Kind
	kept := fmt.Sprintf("succeeded=%s,skipped=%s,cancelled=%s,failed=%s,expired=%s", keptText(used.Retention.Succeeded), keptText(used.Retention.Skipped),
		keptText(used.Retention.Cancelled), keptText(used.Retention.Failed), keptText(used.Retention.Expired))
	all := []api.Setting{
		{Name: "FF_STORE", Value: kind, Source: fromProgram},
		SettingOf("FF_STORE_DIRECT_URL", on.DirectURL != "", isSet(on.DirectURL)),
		SettingOf("FF_MIGRATE", given.Migrate != api.MigrateAuto, given.Migrate.String()),
		SettingOf("FF_UNSAFE_DURABILITY", given.UnsafeDurability, strconv.FormatBool(given.UnsafeDurability)),
		SettingOf("FF_MAX_PAYLOAD", given.MaxPayload != 0, strconv.Itoa(used.Limits.MaxPayload)),
		SettingOf("FF_QUEUE_LIMIT", given.QueueLimit != 0, strconv.Itoa(used.QueueLimit)),
		SettingOf("FF_BATCH_LIMIT", given.BatchLimit != 0, strconv.Itoa(used.BatchLimit)),
		SettingOf("FF_MAX_CLAIMS", given.MaxClaims != 0, strconv.Itoa(used.MaxWaitingClaims)),
		SettingOf("FF_POLL_INTERVAL", given.PollInterval != 0, used.PollInterval.String()),
		SettingOf("FF_LEASE_TTL", given.LeaseTTL != 0, (time.Duration(used.LeaseTTL) * time.Millisecond).String()),
		SettingOf("FF_RETENTION", given.Retention != flowfabric.Retention{}, kept),
		SettingOf("FF_EVENT_RETENTION", given.EventRetention != 0, keptSpan(used.EventRetention)),
		SettingOf("FF_AUDIT_RETENTION", given.AuditRetention != 0, keptSpan(used.AuditRetention)),
		SettingOf("FF_KEY_GRACE", given.KeyGrace != 0, keyGrace(given).String()),
		SettingOf("FF_MASTER_KEY", given.MasterKey != "", isSet(given.MasterKey)),
		SettingOf("FF_SIGNING_KID", given.SigningKid != "", given.SigningKid),
		SettingOf("FF_SIGNING_SECRET", given.SigningSecret != "", isSet(given.SigningSecret)),
	}
	return slices.Concat(all, webhookSettings(given.Webhooks), on.Settings)
}

const (
	fromDefault = "default"
	fromProgram = "program"
)

// SettingOf returns one setting; a value of "" means unset.
func SettingOf(name string, given bool, value string) api.Setting {
	one := api.Setting{Name: name, Source: fromDefault}
	if given {
		one.Source = fromProgram
	}
	if value != "" {
		one.Value = value
	}
	return one
}

// isSet hides a secret, or an address that may contain a password.
func isSet(secret string) string {
	if secret == "" {
		return ""
	}
	return "set"
}

func keptText(ms *int64) string {
	if ms == nil {
		return ""
	}
	return keptSpan(time.Duration(*ms) * time.Millisecond)
}

// keptSpan formats a retention as the settings of a server do.
func keptSpan(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	return d.String()
}
