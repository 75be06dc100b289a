package zone

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// maxName bounds what is compared with all names; the longest of them has 30 bytes.
const maxName = 40

// Find returns the zone of that IANA name, letter by letter: invalid_schedule, with the nearest name as hint. The host's local zone, offsets and POSIX
// texts are not names.
func Find(name string) (*Zone, error) {
	if read, known := table()[name]; known {
		if z := read(); z != nil {
			return z, nil
		}
	}
	err := base.Errorf(base.CodeInvalidSchedule, "%q is not a time zone", base.CutText(name, maxName)).WithField("timezone")
	if near := nearest(name); near != "" {
		return nil, err.WithHint("use a name of the IANA database; the nearest one is %s", near)
	}
	return nil, err.WithHint("use a name of the IANA database, such as Europe/Berlin or UTC")
}

// nearest returns the name that takes the fewest edits to make from text, ignoring case; "" if text has little in common with any. Of equally
// near names it is the first one.
func nearest(text string) string {
	if len(text) > maxName {
		return ""
	}
	text = strings.ToLower(strings.ReplaceAll(text, " ", "_"))
	best, least := "", len(text)/2+1
	for _, name := range Names() {
		full := strings.ToLower(name)
		edits := distance(text, full)
		if city := full[strings.LastIndexByte(full, '/')+1:]; len(city) > 2 && city == text {
			edits = min(edits, 1) // the city alone
		}
		if edits < least {
			best, least = name, edits
		}
	}
	return best
}

// distance is the number of bytes to insert, remove or replace between two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := diagonal
			if a[i] != b[j] {
				edits = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}
