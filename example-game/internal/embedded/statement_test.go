package embedded_test

import (
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/embedded"
)

func TestTouchesTables(t *testing.T) {
	for _, tc := range []struct {
		query  string
		want   bool
		reason string
	}{
		{"SELECT 1", false, "a probe"},
		{"select @@global.read_only", false, "a probe"},
		{"/* ping */ SELECT 1", false, "a comment changes nothing"},
		{"SET NAMES utf8mb4", false, "the driver's greeting"},
		{"SHOW VARIABLES LIKE 'x'", false, "reads no table"},
		{"SHOW GLOBAL STATUS", false, "reads no table"},
		{"SELECT gold FROM players", true, "reads a table"},
		{"SELECT\ngold\nFROM players", true, "reads a table, in lines"},
		{"SELECT (SELECT max(gold) FROM players)", true, "reads a table inside"},
		{"SET @a = (SELECT max(gold) FROM players)", true, "reads a table inside"},
		{"SHOW TABLES", true, "reads the list of tables"},
		{"START TRANSACTION", true, "a transaction holds the gate from its start"},
		{"UPDATE players SET gold = 1", true, "writes"},
		{"/*!50000 UPDATE players SET gold = 1 */", true, "an executable comment"},
		{"", true, "in doubt yes"},
	} {
		if got := embedded.TouchesTables(tc.query); got != tc.want {
			t.Errorf("TouchesTables(%q) = %v, want %v: %s", tc.query, got, tc.want, tc.reason)
		}
	}
}
