package base

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"
)

const someUUID = "0190f0c2-1111-7aaa-8bbb-0123456789ab"

func TestL3_the_crc_has_its_check_value(t *testing.T) {
	t.Parallel()
	if got := crc16([]byte("123456789")); got != 0x31c3 {
		t.Fatalf("crc %#x, want 0x31c3", got)
	}
}

func TestL1_ids_have_exactly_one_spelling(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{fp:0}:" + someUUID, "{fp:7}:" + someUUID, "{fp:10}:" + someUUID, "{fp:255}:" + someUUID} {
		given, err := ParseID(text)
		if err != nil || !given.Full || given.ID().Full() != text || given.ID().String() != someUUID || BareID(text) != someUUID {
			t.Errorf("%s: %+v, %v", text, given, err)
		}
	}
	for name, text := range map[string]string{
		"empty":               "",
		"leading zero":        "{fp:07}:" + someUUID,
		"two zeros":           "{fp:00}:" + someUUID,
		"plus sign":           "{fp:+7}:" + someUUID,
		"minus sign":          "{fp:-7}:" + someUUID,
		"N=256":               "{fp:256}:" + someUUID,
		"N=999":               "{fp:999}:" + someUUID,
		"four digits":         "{fp:0255}:" + someUUID,
		"no N":                "{fp:}:" + someUUID,
		"space in N":          "{fp: 7}:" + someUUID,
		"other digits":        "{fp:٧}:" + someUUID,
		"upper case":          "{fp:7}:" + strings.ToUpper(someUUID),
		"fifth hyphen":        "00000000-0000-0000-0000-000000-00000",
		"hyphen pair":         "00000000-0000-0000-0000-0000--000000",
		"bare upper case":     strings.ToUpper(someUUID),
		"braces":              "{" + someUUID + "}",
		"urn":                 "urn:uuid:" + someUUID,
		"no hyphens":          strings.ReplaceAll(someUUID, "-", ""),
		"hyphen misplaced":    "0190f0c-21111-7aaa-8bbb-0123456789ab",
		"not hex":             "0190f0c2-1111-7aaa-8bbb-0123456789ag",
		"too short":           someUUID[:35],
		"too long":            someUUID + "0",
		"tag only":            "{fp:7}:",
		"tag without colon":   "{fp:7}" + someUUID,
		"tag in upper case":   "{FP:7}:" + someUUID,
		"white space before":  " " + someUUID,
		"white space after":   someUUID + " ",
		"prefix without open": "fp:7}:" + someUUID,
	} {
		if _, err := ParseID(text); CodeOf(err) != CodeInvalidID {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestL2_a_full_form_names_only_its_own_partition_and_a_bare_uuid_any(t *testing.T) {
	t.Parallel()
	stored := ID{N: 9, UUID: UUID{1}}
	bare := GivenID{UUID: stored.UUID}
	if !bare.Names(stored) || !stored.Given().Names(stored) {
		t.Error("the stored id is not named by its own forms")
	}
	if (GivenID{UUID: stored.UUID, N: 8, Full: true}).Names(stored) || (GivenID{UUID: UUID{2}}).Names(stored) {
		t.Error("another N or UUID names the stored id")
	}
}

func TestL3_a_bare_uuid_of_any_version_gets_its_computed_partition(t *testing.T) {
	t.Parallel()
	for _, text := range []string{someUUID, "00000000-0000-4000-8000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"} {
		given, err := ParseID(text)
		if err != nil || given.Full {
			t.Fatalf("%s: %+v, %v", text, given, err)
		}
		if want := uint8(crc16(given.UUID[:]) % 256); given.ID().N != want || given.ID().UUID.String() != text {
			t.Errorf("%s became %s, want N %d", text, given.ID(), want)
		}
	}
}

func TestL4_minted_uuids_are_version_7_and_carry_their_moment(t *testing.T) {
	t.Parallel()
	u := MintUUID(0x0190f0c21111, [10]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	if got := u.String(); got != "0190f0c2-1111-7fff-bfff-ffffffffffff" {
		t.Errorf("minted %s", got)
	}
}

func TestL4_minted_uuids_increase_also_while_the_clock_stands_still_or_goes_back(t *testing.T) {
	t.Parallel()
	var m Minter
	start := time.UnixMilli(0x0190f0c21111).Add(500 * time.Microsecond)
	if got := m.Mint(start, [10]byte{}).String(); got != "0190f0c2-1111-7800-8000-000000000000" {
		t.Errorf("minted %s", got)
	}
	var last UUID
	for i := range 3 * 4096 {
		now := start
		if i%3 == 0 {
			now = start.Add(-time.Second)
		}
		u := m.Mint(now, [10]byte{9: byte(-i)})
		if bytes.Compare(u[:], last[:]) <= 0 || u[6]>>4 != 7 || u[8]>>6 != 2 {
			t.Fatalf("%s after %s", u, last)
		}
		last = u
	}
}

func TestL1_only_the_uuid_is_shown_and_records_keep_the_full_form(t *testing.T) {
	t.Parallel()
	uuid, _ := ParseUUID(someUUID)
	id := ID{N: 7, UUID: uuid}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "execution_id", id)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "execution_id", id)
	for what, shown := range map[string]string{
		"String": id.String(), "a message": fmt.Sprintf("%v", id), "a log": log.String(), "an error": fmt.Sprint(Errorf(CodeExecutionNotFound, "no %s", id)),
		"a quotation": QuoteID(id.Full()),
	} {
		if !strings.Contains(shown, someUUID) || strings.Contains(shown, "fp:") {
			t.Errorf("%s shows %s", what, shown)
		}
	}
	for _, text := range []string{"", "x", "{fp:256}:" + someUUID, "lane:" + someUUID} {
		if got := BareID(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	var back ID
	if text, err := id.MarshalText(); err != nil || string(text) != "{fp:7}:"+someUUID || back.UnmarshalText(text) != nil || back != id {
		t.Errorf("a record has %s, %v, which is read as %+v", text, err, back)
	}
}

func TestL1_the_filter_of_a_bulk_job_gets_bare_ids(t *testing.T) {
	t.Parallel()
	full := "{fp:7}:" + someUUID
	for text, want := range map[string]string{
		`{"filter":{"flow_id":["` + full + `","x"],"parent_id":["` + full + `"],"q":"` + full + `","kind":["` + full + `"]},"a":"` + full + `"}`: `{"a":"` + full + `","filter":{"flow_id":["` + someUUID + `","x"],"kind":["` + full + `"],"parent_id":["` + someUUID + `"],"q":"` + someUUID + `"}}`,
		`{"tags":{"a":"` + full + `"}}`: `{"tags":{"a":"` + full + `"}}`,
		`{ "filter":{} }`:               `{ "filter":{} }`,
		``:                              ``,
	} {
		if got := string(BareFilter(json.RawMessage(text))); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{someUUID, "{fp:7}:" + someUUID, "{fp:07}:" + someUUID, "{fp:256}:", "{fp:", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		given, err := ParseID(text)
		if err != nil {
			if CodeOf(err) != CodeInvalidID {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if full := given.ID().Full(); given.Full && full != text || !given.Full && !strings.HasSuffix(full, text) {
			t.Fatalf("%q was read as %s", text, full)
		}
	})
}

func TestW27_a_token_in_place_of_an_id_is_not_shown(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]string{
		"k1:" + digest:                         "what was given",
		digest[:33]:                            "what was given",
		digest[:32]:                            strconv.Quote(digest[:32]),
		"0190f0c2-2222-7aaa-8bbb-0123456789ax": `"0190f0c2-2222-7aaa-8bbb-0123456789ax"`,
	} {
		if got := QuoteID(text); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if _, err := ParseID(text); err == nil || strings.Contains(err.Error(), digest) {
			t.Error(err)
		}
	}
}
