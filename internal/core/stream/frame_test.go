package stream

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestE1_arguments_are_checked_code_by_code_over_all_frames(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("a", n) }
	big := text(long(MaxPayload + 1))
	reserved := Draft{Type: "gap"}
	for _, row := range []struct {
		name   string
		drafts []Draft
		code   base.Code
		field  string
	}{
		{"no frames", nil, base.CodeInvalidFrame, "frames"},
		{"a type that is too long", []Draft{text("x"), {Type: long(65)}}, base.CodeInvalidFrame, "frames[1].type"},
		{"an upper-case type", []Draft{{Type: "Data"}}, base.CodeInvalidFrame, "frames[0].type"},
		{"a mode that there is not", []Draft{{Mode: 3}}, base.CodeInvalidFrame, "frames[0].mode"},
		{"a content type with a line break", []Draft{{ContentType: "a\nb"}}, base.CodeInvalidFrame, "frames[0].content_type"},
		{"a content type that is too long", []Draft{{ContentType: long(129)}}, base.CodeInvalidFrame, "frames[0].content_type"},
		{"a correlation id that is too long", []Draft{{CorrelationID: long(129)}}, base.CodeInvalidFrame, "frames[0].correlation_id"},
		{"a correlation id that is not UTF-8", []Draft{{CorrelationID: "\xff"}}, base.CodeInvalidFrame, "frames[0].correlation_id"},
		{"a malformed frame after a reserved one", []Draft{reserved, {Type: "?"}}, base.CodeInvalidFrame, "frames[1].type"},
		{"attempt_started", []Draft{{Type: "attempt_started"}}, base.CodeReservedName, "frames[0].type"},
		{"attempt_closed", []Draft{{Type: "attempt_closed"}}, base.CodeReservedName, "frames[0].type"},
		{"closed", []Draft{{Type: "closed"}}, base.CodeReservedName, "frames[0].type"},
		{"a name of the engine", []Draft{{Type: "__x"}}, base.CodeReservedName, "frames[0].type"},
		{"a reserved frame after a large one", []Draft{big, reserved}, base.CodeReservedName, "frames[1].type"},
		{"a large frame", []Draft{text("x"), text("x"), big}, base.CodeFrameTooLarge, "frames[2].payload"},
		{"a large frame among too many", append(some(300, Durable, 1), big), base.CodeFrameTooLarge, "frames[300].payload"},
		{"too many frames", some(257, Durable, 0), base.CodeBatchTooLarge, "frames[256]"},
		{"too many bytes", append(some(16, Durable, MaxPayload), text("x")), base.CodeBatchTooLarge, "frames[16]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			wantCode(t, CheckDrafts(row.drafts), row.code, row.field)
			_, err := Head{}.Append(testPolicy(), &Appending{Drafts: row.drafts, Now: 1})
			wantCode(t, err, row.code, row.field)
		})
	}
}

func TestE1_the_largest_call_passes(t *testing.T) {
	t.Parallel()
	for _, drafts := range [][]Draft{some(256, Durable, 4096), some(16, Durable, MaxPayload), {{Type: strings.Repeat("z", 64), CorrelationID: strings.Repeat("é", 64)}}} {
		if err := CheckDrafts(drafts); err != nil {
			t.Error(err)
		}
	}
}

func TestE1_a_frame_has_defaults(t *testing.T) {
	t.Parallel()
	a := must[Appended](t)(Head{}.Append(testPolicy(), &Appending{Drafts: []Draft{text("x"), patch("{}"), {Type: "log", ContentType: "text/plain", CorrelationID: "c"}}, Now: 7}))
	wantFrames(t, "durable", a.Chunks[0].Frames, []Frame{
		{Seq: 1, At: 7, Type: "data", Payload: []byte("x"), ContentType: "application/octet-stream"},
		{Seq: 3, At: 7, Type: "log", ContentType: "text/plain", CorrelationID: "c"},
	})
	wantFrames(t, "summary", a.Chunks[1].Frames, []Frame{{Seq: 2, At: 7, Type: "data", Mode: Summary, Payload: []byte("{}"), ContentType: "application/json", SummaryVersion: 1}})
}

func TestE1_words_of_modes_are_read(t *testing.T) {
	t.Parallel()
	for _, m := range Modes() {
		if back, ok := ParseMode(m.String()); !ok || back != m {
			t.Errorf("%s is read as %s", m, back)
		}
		if !SetOf(m).Has(m) || SetOf(m).Has((m+1)%modes) || !ModeSet(0).Has(m) {
			t.Errorf("the sets of %s", m)
		}
	}
	if m, ok := ParseMode(""); !ok || m != Durable {
		t.Error("durable is not the default")
	}
	if _, ok := ParseMode("other"); ok {
		t.Error("other is a mode")
	}
}
