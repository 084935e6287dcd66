package envread_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/envread"
)

type colour string

func TestReaderReads(t *testing.T) {
	r := envread.New(map[string]string{
		"S": "text", "D": "1m30s", "OFF": "off", "ON": "5m", "I": "7",
		"T": "1", "TRUE": "true", "F": "0", "FALSE": "false", "C": "red", "EMPTY": "",
	})
	for _, got := range []struct {
		what      string
		got, want any
	}{
		{"String", r.String("S", "x"), "text"},
		{"Required", r.Required("S", "a text"), "text"},
		{"Duration", r.Duration("D", 0), 90 * time.Second},
		{"DurationOrOff off", r.DurationOrOff("OFF", time.Hour), time.Duration(0)},
		{"DurationOrOff on", r.DurationOrOff("ON", 0), 5 * time.Minute},
		{"Int", r.Int("I", 1, 0, 7), 7},
		{"Bool 1", r.Bool("T", false), true},
		{"Bool true", r.Bool("TRUE", false), true},
		{"Bool 0", r.Bool("F", true), false},
		{"Bool false", r.Bool("FALSE", true), false},
		{"OneOf", envread.OneOf(r, "C", "blue", colour("red"), colour("blue")), colour("red")},
		{"String unset", r.String("NONE", "def"), "def"},
		{"Duration empty", r.Duration("EMPTY", time.Second), time.Second},
		{"DurationOrOff empty", r.DurationOrOff("EMPTY", time.Second), time.Second},
		{"Int empty", r.Int("EMPTY", 3, 0, 9), 3},
		{"Bool empty", r.Bool("EMPTY", true), true},
		{"OneOf empty", envread.OneOf(r, "EMPTY", colour("blue"), "red", "blue"), colour("blue")},
	} {
		if got.got != got.want {
			t.Errorf("%s = %v, want %v", got.what, got.got, got.want)
		}
	}
	if err := r.Err(); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestReaderNamesEveryProblemInOneLine(t *testing.T) {
	r := envread.New(map[string]string{
		"D": "5", "D0": "0s", "DNEG": "-1s", "OFF": "never", "I": "8", "IX": "1.5", "B": "yes", "C": "green", "M": "x",
	})
	values := []any{
		r.Required("R", "a URL"), r.Duration("D", 1), r.Duration("D0", 2), r.Duration("DNEG", 3), r.DurationOrOff("OFF", 4),
		r.Int("I", 5, 0, 7), r.Int("IX", 6, 0, 7), r.Int("M", 6, 1, math.MaxInt), r.Bool("B", true),
		envread.OneOf(r, "C", "blue", colour("red"), colour("blue")),
	}
	want := []any{"", time.Duration(1), time.Duration(2), time.Duration(3), time.Duration(4), 5, 6, 6, true, colour("blue")}
	if fmt.Sprint(values) != fmt.Sprint(want) {
		t.Errorf("malformed variables read as %v, want the defaults %v", values, want)
	}
	err := r.Err()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		"R: is not set: want a URL", `D: "5", want a duration of more than 0`, `D0: "0s"`, `DNEG: "-1s"`,
		`OFF: "never", want "off" or a duration`, `I: "8", want a whole number from 0 to 7`, `IX: "1.5"`,
		`M: "x", want a whole number of at least 1`, `B: "yes", want 1 or true, 0 or false`, `C: "green", want one of red, blue`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not say %q:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("the error takes more than a line")
	}
}

func TestReaderQuotesNoSecret(t *testing.T) {
	for _, secret := range []string{
		"app:hunter2@tcp(db1:3306)/game", "redis://:hunter2@r:6379", "hunter2hunter2hunter2hunter2hunter2hunter2", "hunter2\n",
	} {
		r := envread.New(map[string]string{"X": secret})
		r.Int("X", 0, 0, 1)
		if err := r.Err(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, want one without the value", err)
		}
	}
}

func TestReaderUnasked(t *testing.T) {
	r := envread.New(map[string]string{"P_B": "1", "P_A": "1", "P_EMPTY": "", "P_READ": "1", "Q": "1"})
	r.Int("P_READ", 0, 0, 1)
	if got := r.Unasked("P_"); strings.Join(got, " ") != "P_A P_B" {
		t.Errorf("unasked %q, want P_A and P_B", got)
	}
}

func TestReaderAdd(t *testing.T) {
	other := envread.New(nil)
	other.Problemf("A", "is wrong")
	r := envread.New(nil)
	r.Add(nil)
	if err := r.Err(); err != nil {
		t.Fatalf("error %v after adding nil", err)
	}
	r.Add(fmt.Errorf("config: %w", other.Err()))
	r.Add(errors.Join(errors.New("b and c clash"), errors.New("two\nlines")))
	if got, want := fmt.Sprint(r.Err()), "A: is wrong; b and c clash; two; lines"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	e, ok := errors.AsType[*envread.Error](r.Err())
	if !ok || len(e.Problems) != 3 || e.Problems[0].Variable != "A" {
		t.Errorf("problems %+v", e)
	}
}

func TestEnviron(t *testing.T) {
	t.Setenv("ENVREAD_TEST", "a=b")
	if got := envread.Environ()["ENVREAD_TEST"]; got != "a=b" {
		t.Errorf("value %q, want a=b", got)
	}
}
