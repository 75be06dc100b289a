package unique

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Rule is what a submit states about others of its key (T48). Zero values mean the defaults that are given here.
type Rule struct {
	Key        string      // 1..128 bytes of UTF-8 without control characters
	While      While       // "": live
	WindowMS   base.Millis // a conflict lasts so long from the creation of the holder: one second to 90 days; 0: no window, which none requires
	OnConflict OnConflict  // "": existing
}

// While is how long the holder of a key is in conflict with other submits of it.
type While string

// The values of While.
const (
	Live   While = "live"   // until it ends
	Queued While = "queued" // until it ends or a worker gets it
	None   While = "none"   // for the window alone
)

// OnConflict is what becomes of a submit that conflicts with the holder of its key.
type OnConflict string

// The values of OnConflict.
const (
	Existing OnConflict = "existing" // its answer is the holder
	Reject   OnConflict = "reject"   // it is refused
	Replace  OnConflict = "replace"  // the holder is cancelled in its favour
)

// Bounds of a window.
const (
	minWindow = base.Second
	maxWindow = 90 * base.Day
)

// Check requires a rule within its bounds and returns it with its defaults: invalid_argument.
func (r Rule) Check() (Rule, error) {
	if r.While == "" {
		r.While = Live
	}
	if r.OnConflict == "" {
		r.OnConflict = Existing
	}
	if why := base.CheckKeyText(r.Key); why != "" {
		return Rule{}, base.Invalid("unique.key", "%s", why)
	}
	if whiles := []While{Live, Queued, None}; !slices.Contains(whiles, r.While) {
		return Rule{}, base.Invalid("unique.while", "must be one of %s", listed(whiles))
	}
	if policies := []OnConflict{Existing, Reject, Replace}; !slices.Contains(policies, r.OnConflict) {
		return Rule{}, base.Invalid("unique.on_conflict", "must be one of %s", listed(policies))
	}
	if r.WindowMS == 0 && r.While == None {
		return Rule{}, base.Invalid("unique.window_ms", "is required with while none")
	}
	if r.WindowMS != 0 && (r.WindowMS < minWindow || r.WindowMS > maxWindow) {
		return Rule{}, base.Invalid("unique.window_ms", "must be in %d..%d", minWindow, maxWindow)
	}
	return r, nil
}

func listed[T ~string](values []T) string {
	var words []string
	for _, v := range values {
		words = append(words, string(v))
	}
	return strings.Join(words, ", ")
}

// InputKey returns a key that is the same for equal inputs of a kind, byte by byte, and for no others (T50).
func InputKey(kind string, input []byte) string {
	h := sha256.New()
	base.AddPart(h, []byte(kind))
	base.AddPart(h, input)
	return hex.EncodeToString(h.Sum(nil))
}
