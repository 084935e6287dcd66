package jsonbody_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/jsonbody"
	"github.com/shardhop/shardhop/example-game/internal/problem"
)

type form struct {
	Text string `json:"text"`
}

func TestDecode(t *testing.T) {
	const plain = "application/json"
	for _, tc := range []struct {
		kind, body string
		text       string // when it is good
		status     int    // when it is not
		code       string
		reason     string
	}{
		{plain, `{"text":"a"}`, "a", 0, "", "plain"},
		{plain, ` {"text":"a","more":1} `, "a", 0, "", "an unknown field is ignored"},
		{"Application/JSON; charset=UTF-8", `{"text":"a"}`, "a", 0, "", "the one charset of JSON"},
		{plain, `{"text":"\u00e4\ud83d\ude00"}`, "ä😀", 0, "", "a whole pair"},
		{plain, `{"text":"\\ud800"}`, `\ud800`, 0, "", "a backslash and text, no escape"},
		{plain, `{"text":"\ud800"}`, "", 400, "bad_json", "the first half alone"},
		{plain, `{"text":"\udfffx"}`, "", 400, "bad_json", "the second half alone"},
		{plain, `{"text":"\ude00\ud83d"}`, "", 400, "bad_json", "two halves the wrong way round"},
		{plain, `{"text":"\ud800\ud83d\ude00"}`, "", 400, "bad_json", "a half before a pair"},
		{plain, `{"text":"\ud83d\n"}`, "", 400, "bad_json", "a half before another escape"},
		{plain, `{"\udfff":1}`, "", 400, "bad_json", "a half in a name"},
		{plain, `{"text":"\u12`, "", 400, "bad_json", "an escape cut off"},
		{plain, `{"text":"a\`, "", 400, "bad_json", "a backslash at the end"},
		{plain, "{\"text\":\"\xff\"}", "", 400, "bad_json", "not UTF-8"},
		{plain, `{"text":"a"} {}`, "", 400, "bad_json", "two objects"},
		{plain, `["a"]`, "", 400, "bad_json", "an array"},
		{plain, `null`, "", 400, "bad_json", "nothing"},
		{plain, ``, "", 400, "bad_json", "no body"},
		{plain, `{"text":7}`, "", 422, "bad_text", "a number for a text"},
		{plain, `{"text":"` + strings.Repeat("x", 200) + `"}`, "", 413, "body_too_large", "too large"},
		{"", `{"text":"a"}`, "", 415, "not_json", "no type"},
		{"text/plain", `{"text":"a"}`, "", 415, "not_json", "another type"},
		{"application/json; charset=latin1", `{"text":"a"}`, "", 415, "not_json", "another charset"},
		{"application/json; charset", `{"text":"a"}`, "", 415, "not_json", "a malformed type"},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Body = http.MaxBytesReader(nil, httptest.NewRequest("POST", "/", strings.NewReader(tc.body)).Body, 100)
		r.Header.Set("Content-Type", tc.kind)
		var f form
		err := jsonbody.Decode(r, &f)
		if tc.status == 0 {
			if err != nil || f.Text != tc.text {
				t.Errorf("%s: %q, %v, want %q", tc.reason, f.Text, err, tc.text)
			}
			continue
		}
		if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Status != tc.status || p.Code != tc.code {
			t.Errorf("%s: %+v, want %d %s", tc.reason, err, tc.status, tc.code)
		}
	}
}
