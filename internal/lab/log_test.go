package lab_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
)

func TestLogIsReadWhileItIsWritten(t *testing.T) {
	var log lab.Log
	logger := slog.New(slog.NewTextHandler(&log, nil))
	const writers, lines = 4, 50
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range lines {
				logger.Info("line")
				_ = log.String()
			}
		})
	}
	wg.Wait()
	if got := strings.Count(log.String(), "msg=line\n"); got != writers*lines {
		t.Errorf("%d whole lines, want %d", got, writers*lines)
	}
	if n, err := fmt.Fprint(&log, "end"); n != 3 || err != nil || !strings.HasSuffix(log.String(), "end") {
		t.Errorf("wrote %d bytes, error %v", n, err)
	}
}
