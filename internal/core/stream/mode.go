package stream

import "github.com/flowfabric/flowfabric/internal/core/base"

// Mode states how long a frame is kept. The zero Mode is Durable. Values are stored.
type Mode uint8

// The modes of frames.
const (
	Durable    Mode = iota // kept within the bounds of the policy (E6)
	Summary                // a merge patch of the summary document; the newest MaxPatches are kept (E7)
	BestEffort             // kept for a short time, in a number that follows the rate (E8)

	modes = 3

	// NoMode is none of them. CheckDrafts refuses it.
	NoMode Mode = 255
)

var modeNames = [...]string{"durable", "summary", "best_effort"}

// Modes lists all modes.
func Modes() []Mode { return []Mode{Durable, Summary, BestEffort} }

// String is the word of the API.
func (m Mode) String() string { return base.NameOf(modeNames[:], int(m)) }

// ParseMode is the inverse of String. The empty text is Durable, the default.
func ParseMode(text string) (Mode, bool) {
	if text == "" {
		return Durable, true
	}
	n, ok := base.ValueOf(modeNames[:], text)
	return Mode(n), ok
}

// ModeSet is a set of modes. The zero set stands for all modes.
type ModeSet uint8

// SetOf returns the set of the given modes.
func SetOf(of ...Mode) ModeSet {
	var set ModeSet
	for _, m := range of {
		set |= 1 << m
	}
	return set
}

// Has reports whether a mode is in the set.
func (s ModeSet) Has(m Mode) bool { return s == 0 || s>>m&1 == 1 }
