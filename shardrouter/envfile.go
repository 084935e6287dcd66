package shardrouter

import (
	"errors"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/shardhop/shardhop/internal/envread"
)

// maxEnvFile bounds the file that SHARDS_FILE names.
const maxEnvFile = 1 << 20

var (
	errNoFile   = errors.New("is no regular file")
	errLongFile = errors.New("is longer than a mebibyte")
)

// WithFile returns vars with the variables of the file that SHARDS_FILE names
// over them; vars as they are where it names none. The file holds SHARDS and
// SHARD_*, one KEY=value a line; blank lines, and those that begin with #, are
// passed over, and so are blanks around a key and a value. The error names
// every line that is wrong, and no value; the other lines are in the result all
// the same.
func WithFile(vars map[string]string) (map[string]string, error) {
	path := vars["SHARDS_FILE"]
	if path == "" {
		return vars, nil
	}
	r := envread.New(vars)
	text, err := readEnvFile(path)
	if err != nil {
		r.Problemf("SHARDS_FILE", "cannot be read: %v", err)
		return vars, r.Err()
	}
	read := parseEnvFile(r, text)
	vars = maps.Clone(vars)
	maps.Copy(vars, read)
	return vars, r.Err()
}

func readEnvFile(path string) (text string, err error) {
	// Before it is opened: a pipe would be waited for.
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errNoFile
	}
	f, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if len(data) > maxEnvFile {
		err = errors.Join(err, errLongFile)
	}
	return string(data), err
}

// parseEnvFile returns the variables of a file's text, and reports to r what is
// wrong with it.
func parseEnvFile(r *envread.Reader, text string) map[string]string {
	read := make(map[string]string)
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		_, twice := read[key]
		switch {
		case !found:
			r.Problemf("SHARDS_FILE", "line %d has no =: want KEY=value", number)
		case key != "SHARDS" && !strings.HasPrefix(key, "SHARD_"):
			r.Problemf("SHARDS_FILE", "line %d: want SHARDS or SHARD_… before the =; everything else stands in the environment", number)
		case twice:
			r.Problemf("SHARDS_FILE", "line %d: %s stands there twice", number, envread.Quote(key))
		default:
			read[key] = strings.TrimSpace(value)
		}
	}
	return read
}
