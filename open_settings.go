package flowfabric

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// settingsOf are the settings that Open was given, and the defaults of the rest.
func settingsOf(given OpenConfig, e *engine.Engine) []Setting {
	used, kind := e.Config(), e.Info().Kind
	kept := fmt.Sprintf("succeeded=%s,skipped=%s,cancelled=%s,failed=%s,expired=%s", keptText(used.Retention.Succeeded), keptText(used.Retention.Skipped),
		keptText(used.Retention.Cancelled), keptText(used.Retention.Failed), keptText(used.Retention.Expired))
	all := []Setting{
		{Name: "FF_STORE", Value: kind, Source: fromProgram},
		setting("FF_STORE_DIRECT_URL", given.DirectURL != "", isSet(given.DirectURL)),
		setting("FF_MIGRATE", given.Migrate != "", cmp.Or(given.Migrate, "auto")),
		setting("FF_UNSAFE_DURABILITY", given.UnsafeDurability, strconv.FormatBool(given.UnsafeDurability)),
		setting("FF_MAX_PAYLOAD", given.MaxPayload != 0, strconv.Itoa(used.Limits.MaxPayload)),
		setting("FF_QUEUE_LIMIT", given.QueueLimit != 0, strconv.Itoa(used.QueueLimit)),
		setting("FF_BATCH_LIMIT", given.BatchLimit != 0, strconv.Itoa(used.BatchLimit)),
		setting("FF_MAX_CLAIMS", given.MaxClaims != 0, strconv.Itoa(used.MaxWaitingClaims)),
		setting("FF_POLL_INTERVAL", given.PollInterval != 0, used.PollInterval.String()),
		setting("FF_LEASE_TTL", given.LeaseTTL != 0, duration(used.LeaseTTL).String()),
		setting("FF_RETENTION", given.Retention != Retention{}, kept),
		setting("FF_EVENT_RETENTION", given.EventRetention != 0, keptSpan(used.EventRetention)),
		setting("FF_AUDIT_RETENTION", given.AuditRetention != 0, keptSpan(used.AuditRetention)),
		setting("FF_KEY_GRACE", given.KeyGrace != 0, given.keyGrace().String()),
		setting("FF_MASTER_KEY", given.MasterKey != "", isSet(given.MasterKey)),
		setting("FF_SIGNING_KID", given.SigningKid != "", given.SigningKid),
		setting("FF_SIGNING_SECRET", given.SigningSecret != "", isSet(given.SigningSecret)),
	}
	if kind == "postgres" {
		all = append(all,
			setting("FF_STORE_POOL", given.StorePool != 0, strconv.Itoa(cmp.Or(given.StorePool, postgres.DefaultPool))),
			setting("FF_STORE_TIMEOUT", given.StoreTimeout != 0, cmp.Or(given.StoreTimeout, postgres.DefaultTimeout).String()))
	}
	return all
}

const (
	fromDefault = "default"
	fromProgram = "program"
)

// setting is one of them; a value of "" is none.
func setting(name string, given bool, value string) Setting {
	one := Setting{Name: name, Source: fromDefault}
	if given {
		one.Source = fromProgram
	}
	if value != "" {
		one.Value = value
	}
	return one
}

// isSet shows a secret, or an address that may hold a password.
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
	return keptSpan(duration(*ms))
}

// keptSpan writes how long something is kept as the settings of a server do.
func keptSpan(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	return d.String()
}

// keyGrace is how long a secret that was replaced works on unless the call says otherwise.
func (cfg OpenConfig) keyGrace() time.Duration {
	if cfg.KeyGrace == 0 {
		return duration(keyring.DefaultOverlap)
	}
	return cfg.KeyGrace
}
