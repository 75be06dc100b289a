package store

import (
	"encoding/json"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"pgregory.net/rapid"
)

func TestE26_the_data_of_events_comes_back_byte_for_byte(t *testing.T) {
	t.Parallel()
	texts := []string{
		``, `{}`, `null`, `{"a":1}`, `{"a":-0,"b":007,"c":1.5,"d":1e9,"e":-12,"f":123456789012345678901}`,
		`{"id":"0190f0c2-1111-7aaa-8bbb-0123456789ab","ID":"0190F0C2-1111-7aaa-8bbb-0123456789ab"}`,
		`{"at":"2026-01-02T03:04:05.678Z","no":"2026-13-02T03:04:05.678Z","zero":"1970-01-01T00:00:00.000Z"}`,
		`{"text":"a \"quoted\" one","unicode":"ä\u0001","list":["a","b",3,true,null]}`, "{\"raw\":\"\x01\"}", `{"cut":"`, `"`, `-`, `[1,2,3]`,
	}
	for _, text := range texts {
		sameData(t, text)
	}
}

func TestE26_any_bytes_in_the_place_of_data_come_back(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sameData(t, string(rapid.SliceOfN(rapid.SampledFrom([]byte("{}[]\":,-.0127eE\\aZT\x00\x01\x03\x05 ")), 0, 60).Draw(t, "bytes")))
	})
}

func sameData(t interface {
	Fatalf(format string, args ...any)
}, text string,
) {
	events := []core.Event{{Kind: "k", At: 5, AttemptIndex: -1, Data: json.RawMessage(text)}, {Kind: "k", At: 6, AttemptIndex: -1, Data: json.RawMessage(text)}}
	back, err := DecodeCommit(EncodeCommit(events))
	if err != nil || string(back[0].Data) != text || string(back[1].Data) != text {
		t.Fatalf("%q came back as %+v, %v", text, back, err)
	}
}
