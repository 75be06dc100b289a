package base

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits are the bounds of L6 that a server may set. The zero value means the defaults.
type Limits struct {
	MaxPayload int // bytes of an input or result; 0: 4 MiB; at most 64 MiB
}

// DefaultLimits returns the limits of a server that sets none.
func DefaultLimits() Limits { return Limits{MaxPayload: 4 << 20} }

// Bounds and defaults of L6.
const (
	DefaultNamespace   = "default"
	DefaultLane        = "default"
	DefaultContentType = "application/octet-stream"
	DefaultLeaseTTL    = 30 * Second

	MaxPayloadSetting = 64 << 20
	MaxPriority       = 9000
	MaxTags           = 64
	MinLeaseTTL       = 500
	MaxLeaseTTL       = 24 * Hour
	MaxAhead          = 10 * Year // of delay_until and deadline_at
	MaxBulkItems      = 10_000
	MaxBulkBytes      = 64 << 20

	MaxMessage        = 16 << 10
	maxDetail         = 64 << 10
	MaxIdempotencyKey = 256
	MaxNames          = 1000      // in a list of lanes, namespaces or kinds
	maxRate           = 1_000_000 // of settings that limit requests
)

// CheckNamespace requires 1..128 of `[A-Za-z0-9][A-Za-z0-9_.:-]*`, else invalid_argument.
func CheckNamespace(text string) error { return RefuseText("namespace", CheckNameText(text)) }

// CheckLane requires 1..64 bytes 0x21..0x7e, else invalid_argument.
func CheckLane(text string) error { return RefuseText("lane", CheckGraphic(text, 64)) }

// CheckKind requires 1..128 bytes 0x21..0x7e, else invalid_argument.
func CheckKind(text string) error { return RefuseText("kind", CheckGraphic(text, 128)) }

// CheckWorkerID checks a worker_id or worker_instance_id: 1..256, UTF-8 without white space and control characters, else
// invalid_argument.
func CheckWorkerID(field, text string) error {
	why := CheckText(text, 1, 256)
	if why == "" && strings.ContainsFunc(text, SpaceOrControl) {
		why = "must not contain white space or control characters"
	}
	return RefuseText(field, why)
}

// CheckIdempotencyKey requires 1..256, UTF-8 without control characters, else invalid_argument. Empty counts as absent and passes.
func CheckIdempotencyKey(text string) error {
	return RefuseText("idempotency_key", CheckPlain(text, 0, MaxIdempotencyKey))
}

// CheckRequestKey requires 1..128 bytes 0x21..0x7e (W4), else invalid_argument. Empty is absent and passes.
func CheckRequestKey(text string) error {
	if text == "" {
		return nil
	}
	return RefuseText("request_key", CheckGraphic(text, 128))
}

// CheckCreator requires 0..256, UTF-8 without control characters, else invalid_argument.
func CheckCreator(text string) error { return RefuseText("creator", CheckPlain(text, 0, 256)) }

// CheckReason checks a reason text: 0..1024, UTF-8, else invalid_argument.
func CheckReason(field, text string) error { return RefuseText(field, CheckText(text, 0, 1024)) }

// CheckContentType requires 1..128 printable ASCII, else invalid_argument.
func CheckContentType(field, text string) error {
	return RefuseText(field, CheckBytes(text, 128, 0x20, "must be printable ASCII"))
}

// CheckCategory checks the category of a failure: 1..64 of `[a-z0-9_.-]` (L91), else invalid_argument.
func CheckCategory(field, text string) error { return RefuseText(field, CheckCategoryText(text)) }

// CheckPayload checks the size of an input or result against the limit, else payload_too_large.
func (l Limits) CheckPayload(field string, size int) error {
	limit := l.MaxPayload
	if limit == 0 {
		limit = DefaultLimits().MaxPayload
	}
	return CheckSize(field, size, limit)
}

// CheckSize requires at most limit bytes: payload_too_large.
func CheckSize(field string, size, limit int) error {
	if size <= limit {
		return nil
	}
	return Errorf(CodePayloadTooLarge, "%d bytes, at most %d are allowed", size, limit).
		WithField(field).With("size", size).With("limit", limit).
		WithHint("send at most %d bytes: keep large data elsewhere and send a reference", limit)
}

// CheckBulk checks the bounds of a bulk submit, else batch_too_large.
func CheckBulk(items int, bytes int64) error {
	if items <= MaxBulkItems && bytes <= MaxBulkBytes {
		return nil
	}
	return Errorf(CodeBatchTooLarge, "%d items with %d bytes, at most %d items and %d bytes are allowed in a call", items, bytes, MaxBulkItems, MaxBulkBytes)
}

// CheckTTL requires a lease ttl of 500 ms..24 h, else invalid_argument. The caller fills in the default for an absent one.
func CheckTTL(ms Millis) error {
	if ms >= MinLeaseTTL && ms <= MaxLeaseTTL {
		return nil
	}
	return Invalid("lease_ttl_ms", "must be in %d..%d", MinLeaseTTL, MaxLeaseTTL)
}

// CheckProgress requires a percent of 0..100 and a message of 0..4096 in UTF-8, else invalid_argument. Absent ones pass.
func CheckProgress(percent *int, message *string) error {
	if percent != nil && (*percent < 0 || *percent > 100) {
		return Invalid("percent", "must be in 0..100")
	}
	if message != nil {
		return RefuseText("message", CheckText(*message, 0, 4096))
	}
	return nil
}

// CheckAhead requires a moment at most ten years after now, else invalid_argument. An absent one passes.
func CheckAhead(field string, at, now Time) error {
	if at <= now.Add(MaxAhead) {
		return nil
	}
	return Invalid(field, "must be at most ten years ahead")
}

// Tags are the execution's tags (L6). A Tags value is never changed in place.
type Tags map[string]string

// CheckTags checks a whole set of tags: a bad key is invalid_tag_key, anything else invalid_argument.
func CheckTags(tags Tags) error {
	if len(tags) == 0 {
		return nil
	}
	if len(tags) > MaxTags {
		return Invalid("tags", "%d tags, at most %d are allowed", len(tags), MaxTags)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if err := CheckTag(key, tags[key]); err != nil {
			return err
		}
	}
	return nil
}

// CheckTag checks one tag: key 1..64 of `[a-z][a-z0-9_]*(\.[a-z0-9_]+)*` without the prefix `ff.`, else invalid_tag_key;
// value 0..256 of UTF-8, else invalid_argument.
func CheckTag(key, value string) error {
	if err := CheckTagKey(key); err != nil {
		return err
	}
	return RefuseText(FieldUnder("tags", key), CheckText(value, 0, 256))
}

// CheckTagKey is the part of CheckTag for the key.
func CheckTagKey(key string) error {
	switch {
	case !WellFormedTagKey(key):
		shown := CutText(strings.ToValidUTF8(key, "\uFFFD"), 80)
		return Errorf(CodeInvalidTagKey, "%q is not a tag key", shown).WithField(FieldUnder("tags", key)).
			WithHint("a key is 1..64 of lower-case letters, digits, underscores and single dots, beginning with a letter")
	case strings.HasPrefix(key, "ff."):
		return Errorf(CodeInvalidTagKey, "the prefix ff. is reserved").WithField(FieldUnder("tags", key))
	default:
		return nil
	}
}

// WellFormedTagKey reports whether a text has the form of the key of a tag.
func WellFormedTagKey(key string) bool {
	if key == "" || len(key) > 64 || key[0] < 'a' || key[0] > 'z' || key[len(key)-1] == '.' || strings.Contains(key, "..") {
		return false
	}
	return OnlyBytes(key, func(c byte) bool { return lowerOrDigit(c) || c == '_' || c == '.' })
}

// ClampPriority clamps a priority to 0..9000: it is never refused (L6).
func ClampPriority(priority int) int { return min(max(priority, 0), MaxPriority) }

// CutMessage makes the stored form of a failure message: invalid UTF-8 becomes U+FFFD, at most 16 KiB are kept (L6).
func CutMessage(text string) string { return CutText(strings.ToValidUTF8(text, "\uFFFD"), MaxMessage) }

// CutDetail makes the stored form of a failure detail: at most 64 KiB are kept (L6).
func CutDetail(detail []byte) []byte { return detail[:min(len(detail), maxDetail)] }

// CheckNames checks a list of names and makes it sorted and unique.
func CheckNames(field string, names *[]string, limit int, check func(string) string) error {
	if len(*names) > limit {
		return Invalid(field, "has more than %d entries", limit)
	}
	for i, name := range *names {
		if why := check(name); why != "" {
			return Invalid(field+"["+strconv.Itoa(i)+"]", "%s", why)
		}
	}
	*names = slices.Compact(slices.Sorted(slices.Values(*names)))
	return nil
}

// CheckRange requires a setting that limits requests to be in 0..1000000, else invalid_argument.
func CheckRange(field string, n int) error {
	if n < 0 || n > maxRate {
		return Invalid(field, "must be in 0..%d", maxRate)
	}
	return nil
}

// FieldUnder returns the error field for an entry of a map: tags.team, or tags["app.tier"] if the key has other characters than letters, digits and
// underscores, so that no part of a key is mistaken for a field.
func FieldUnder(field, key string) string {
	shown := CutText(strings.ToValidUTF8(key, "\uFFFD"), 80)
	if shown != "" && OnlyBytes(shown, func(c byte) bool { return lowerOrDigit(c) || c >= 'A' && c <= 'Z' || c == '_' }) {
		return field + "." + shown
	}
	return field + "[" + strconv.Quote(shown) + "]"
}

// Element names an entry of a list, as part of a field.
func Element(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// CutText keeps at most limit bytes of text without splitting a character.
func CutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// The functions below return what is wrong with a text, or "". They are shared by the policy and the arguments.

// RefuseText returns invalid_argument for what a check found, nil for "".
func RefuseText(field, why string) error {
	if why == "" {
		return nil
	}
	return Invalid(field, "%s", why)
}

// CheckLength returns what is wrong with the length of a text, or "".
func CheckLength(text string, low, high int) string {
	switch {
	case len(text) < low && text == "":
		return "is required"
	case len(text) > high:
		return "is too long: at most " + strconv.Itoa(high) + " bytes are allowed"
	default:
		return ""
	}
}

// CheckText checks low..high bytes of valid UTF-8.
func CheckText(text string, low, high int) string {
	if why := CheckLength(text, low, high); why != "" {
		return why
	}
	if !utf8.ValidString(text) {
		return "must be valid UTF-8"
	}
	return ""
}

// CheckPlain checks what CheckText does, and that there are no control characters.
func CheckPlain(text string, low, high int) string {
	if why := CheckText(text, low, high); why != "" {
		return why
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "must not contain control characters"
	}
	return ""
}

// CheckKeyText checks fairness keys, quota keys and names of budgets.
func CheckKeyText(text string) string { return CheckPlain(text, 1, 128) }

// CheckGraphic checks 1..high bytes 0x21..0x7e.
func CheckGraphic(text string, high int) string {
	return CheckBytes(text, high, 0x21, "must be printable ASCII without spaces")
}

// CheckBytes returns what is wrong with a text of 1 to high bytes, all from lowest to ~, or "". Otherwise is what is wrong if one is not.
func CheckBytes(text string, high int, lowest byte, otherwise string) string {
	if why := CheckLength(text, 1, high); why != "" {
		return why
	}
	if !OnlyBytes(text, func(c byte) bool { return lowest <= c && c <= 0x7e }) {
		return otherwise
	}
	return ""
}

// CheckNameText checks namespaces and quota ids, 1..128 of `[A-Za-z0-9][A-Za-z0-9_.:-]*`.
func CheckNameText(text string) string {
	if why := CheckLength(text, 1, 128); why != "" {
		return why
	}
	alphanumeric := func(c byte) bool { return lowerOrDigit(c) || 'A' <= c && c <= 'Z' }
	if !alphanumeric(text[0]) || !OnlyBytes(text, func(c byte) bool { return alphanumeric(c) || strings.IndexByte("_.:-", c) >= 0 }) {
		return "must be letters, digits and _ . : - beginning with a letter or digit"
	}
	return ""
}

// CheckCategoryText checks 1..64 of `[a-z0-9_.-]`.
func CheckCategoryText(text string) string {
	if why := CheckLength(text, 1, 64); why != "" {
		return why
	}
	if !OnlyBytes(text, func(c byte) bool { return lowerOrDigit(c) || strings.IndexByte("_.-", c) >= 0 }) {
		return "must be lower-case letters, digits and _ . -"
	}
	return ""
}

// CheckDimensionText checks the name of a budget dimension, 1..64 of `[a-z][a-z0-9_]*`.
func CheckDimensionText(text string) string {
	if why := CheckLength(text, 1, 64); why != "" {
		return why
	}
	if text[0] < 'a' || text[0] > 'z' || !OnlyBytes(text, func(c byte) bool { return lowerOrDigit(c) || c == '_' }) {
		return "must be lower-case letters, digits and _ beginning with a letter"
	}
	return ""
}

func lowerOrDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// OnlyBytes reports whether all bytes of a text are allowed.
func OnlyBytes(text string, allowed func(byte) bool) bool {
	for i := range len(text) {
		if !allowed(text[i]) {
			return false
		}
	}
	return true
}

// SpaceOrControl reports whether a character is white space or a control character.
func SpaceOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
