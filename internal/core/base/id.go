package base

import (
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Partitions is the number of possible values of N in an id (L1).
const Partitions = 256

// UUID is a raw UUID. The zero UUID means absent.
type UUID [16]byte

// IsZero reports whether u is absent.
func (u UUID) IsZero() bool { return u == UUID{} }

// String formats u in lower-case 8-4-4-4-12 form.
func (u UUID) String() string {
	var text [36]byte
	u.encode(text[:])
	return string(text[:])
}

func (u UUID) encode(text []byte) {
	hex.Encode(text[0:8], u[0:4])
	text[8] = '-'
	hex.Encode(text[9:13], u[4:6])
	text[13] = '-'
	hex.Encode(text[14:18], u[6:8])
	text[18] = '-'
	hex.Encode(text[19:23], u[8:10])
	text[23] = '-'
	hex.Encode(text[24:36], u[10:16])
}

// MarshalText writes u as String does; the absent UUID as empty text.
func (u UUID) MarshalText() ([]byte, error) {
	if u.IsZero() {
		return []byte{}, nil
	}
	return []byte(u.String()), nil
}

// UnmarshalText reads what MarshalText wrote. Any other spelling is invalid_id.
func (u *UUID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*u = UUID{}
		return nil
	}
	parsed, ok := ParseUUID(string(text))
	if !ok {
		return Errorf(CodeInvalidID, "%s is not a UUID", QuoteID(string(text)))
	}
	*u = parsed
	return nil
}

// ParseUUID reads the canonical form: lower case, 8-4-4-4-12. Nothing else is a UUID (L1).
func ParseUUID(text string) (UUID, bool) {
	var u UUID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return UUID{}, false
	}
	i := 0
	for at := range u {
		if at == 4 || at == 6 || at == 8 || at == 10 {
			i++ // the hyphen
		}
		high, low := HexDigit(text[i]), HexDigit(text[i+1])
		if high < 0 || low < 0 {
			return UUID{}, false
		}
		u[at] = byte(high<<4 | low)
		i += 2
	}
	return u, true
}

// HexDigit returns the value of a lower-case digit, -1 for anything else.
func HexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	default:
		return -1
	}
}

// MintUUID makes a UUIDv7 from the time and ten random bytes.
func MintUUID(now Time, random [10]byte) UUID {
	var u UUID
	ms := uint64(now)
	u[0], u[1], u[2] = byte(ms>>40), byte(ms>>32), byte(ms>>24)
	u[3], u[4], u[5] = byte(ms>>16), byte(ms>>8), byte(ms)
	copy(u[6:], random[:])
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Minter makes strictly increasing UUIDv7s, so that ids made one after the other sort in that order even within a millisecond (RFC 9562, method 3):
// the twelve bits after the milliseconds hold the fraction of the millisecond, and are incremented while the clock stands still or goes back. The
// zero value is ready to use; it is safe for concurrent use.
type Minter struct {
	last atomic.Uint64 // milliseconds and fraction of the newest
}

// Mint makes a UUIDv7 from the time and ten random bytes, of which it uses eight.
func (m *Minter) Mint(now time.Time, random [10]byte) UUID {
	const fractions = 1 << 12
	moment := uint64(TimeOf(now))*fractions + uint64(now.Nanosecond()%1_000_000)*fractions/1_000_000
	for {
		last := m.last.Load()
		next := max(moment, last+1)
		if m.last.CompareAndSwap(last, next) {
			random[0], random[1] = byte(next%fractions>>8), byte(next)
			return MintUUID(Time(next/fractions), random)
		}
	}
}

// PartitionOf returns the N of work outside a flow: CRC-16/XMODEM over the raw UUID, modulo 256 (L3).
func PartitionOf(u UUID) uint8 { return uint8(crc16(u[:])) }

func crc16(data []byte) uint16 {
	var crc uint16
	for _, b := range data {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// ID identifies an execution or a flow: its UUID, which alone is unique, and its partition number N (L1, L2).
type ID struct {
	N    uint8
	UUID UUID
}

// IDOf returns the full id of a UUID outside a flow (L3).
func IDOf(u UUID) ID { return ID{N: PartitionOf(u), UUID: u} }

// IsZero reports whether id is absent.
func (id ID) IsZero() bool { return id.UUID.IsZero() }

// String returns the UUID alone, as answers, events and log lines show it (L1).
func (id ID) String() string { return id.UUID.String() }

// LogValue shows id in log lines as String does.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }

// Full returns the full form {fp:N}:<uuid>, used in signed messages, effect keys and records (L1).
func (id ID) Full() string {
	text := make([]byte, 0, 46)
	text = append(text, "{fp:"...)
	text = strconv.AppendUint(text, uint64(id.N), 10)
	text = append(text, "}:"...)
	at := len(text)
	text = text[:at+36]
	id.UUID.encode(text[at:])
	return string(text)
}

// MarshalText writes the full form, from which UnmarshalText restores the id. It is for records, not for answers. The absent id is empty text.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return []byte{}, nil
	}
	return []byte(id.Full()), nil
}

// UnmarshalText reads the full form only. It is for text written by MarshalText.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed.ID()
	return nil
}

// GivenID is an id as a caller wrote it: a full form, or a bare UUID without N.
type GivenID struct {
	UUID UUID
	N    uint8
	Full bool // N was given and must equal the stored one (L2)
}

// ID returns the full id: with the given N, else the computed one (L3).
func (g GivenID) ID() ID {
	if g.Full {
		return ID{N: g.N, UUID: g.UUID}
	}
	return IDOf(g.UUID)
}

// Names reports whether g names the record stored under id (L2).
func (g GivenID) Names(id ID) bool {
	return g.UUID == id.UUID && (!g.Full || g.N == id.N)
}

// Given returns the full id in the form callers use.
func (id ID) Given() GivenID { return GivenID{UUID: id.UUID, N: id.N, Full: true} }

// ParseID reads `{fp:N}:<uuid>` or a bare UUID; every other spelling is invalid_id (L1).
func ParseID(text string) (GivenID, error) {
	if given, ok := parseID(text); ok {
		return given, nil
	}
	return GivenID{}, Errorf(CodeInvalidID, "%s is not an id", QuoteID(text)).
		WithHint("give the UUID as an answer showed it, such as 01890a5d-ac96-774b-bcce-b302099a8057")
}

func parseID(text string) (GivenID, bool) {
	if u, ok := ParseUUID(text); ok {
		return GivenID{UUID: u}, true
	}
	rest, found := strings.CutPrefix(text, "{fp:")
	if found {
		number, tail, closed := strings.Cut(rest, "}:")
		n, ok := parsePartition(number)
		u, isUUID := ParseUUID(tail)
		if closed && ok && isUUID {
			return GivenID{UUID: u, N: n, Full: true}, true
		}
	}
	return GivenID{}, false
}

// BareID returns the text of an id as it is shown: a full form without its N. Any other text is returned unchanged.
func BareID(text string) string {
	if given, ok := parseID(text); ok {
		return given.UUID.String()
	}
	return text
}

// QuoteID quotes a text given in place of an id, a full form without its N. A token passed by mistake is not shown (W27).
func QuoteID(text string) string {
	text = BareID(text)
	run := 0
	for i := range len(text) {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			run = 0
			continue
		}
		if run++; run > 2*len(UUID{}) {
			return "what was given"
		}
	}
	return strconv.Quote(CutText(text, 80))
}

func parsePartition(text string) (uint8, bool) {
	if text == "" || len(text) > 3 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return uint8(n), n < Partitions
}

// Tag returns the partition of the id as a grant shows it: {fp:N}.
func (id ID) Tag() string { return "{fp:" + strconv.Itoa(int(id.N)) + "}" }
