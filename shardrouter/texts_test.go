package shardrouter_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/shardrouter"
)

// What is kept of a statement is what stands in it, however often it comes and
// whatever came between, for several goroutines.
func TestTextsKeepWhatStatementsSay(t *testing.T) {
	kinds := []string{
		"SELECT %d", "UPDATE t SET n = %d", "SET NAMES gbk -- %d", "SET @v = %d", "COMMIT -- %d", "CALL p(%d)",
		"SELECT %d; COMMIT", "SELECT dig(%d)", "BEGIN -- %d", "", "SELECT '%d", "/*! COMMIT */ -- %d",
	}
	for _, several := range []bool{false, true} {
		kept := shardrouter.NewTexts(several)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := range 3 * shardrouter.TextSlots {
					query := kinds[i%len(kinds)]
					if strings.Contains(query, "%d") {
						query = fmt.Sprintf(query, i)
					}
					for range 3 {
						if !kept.Agrees(query) {
							t.Errorf("what is kept of %q is not what it says", query)
						}
					}
				}
			})
		}
		all.Wait()
		if n, _ := kept.Kept(); n < shardrouter.TextSlots/2 || n > shardrouter.TextSlots {
			t.Errorf("%d of %d places are taken", n, shardrouter.TextSlots)
		}
	}
}

// Texts that come once, and long ones, take no memory.
func TestTextsAreBounded(t *testing.T) {
	kept := shardrouter.NewTexts(false)
	for i := range 20 * shardrouter.TextSlots {
		kept.Agrees(fmt.Sprintf("SELECT %d", i))
	}
	if n, _ := kept.Kept(); n != 0 {
		t.Errorf("%d texts are kept that came once", n)
	}
	whole := strings.Repeat("SELECT 1", shardrouter.LongestText)
	for range 3 {
		kept.Agrees(whole)
		kept.Agrees(whole[:shardrouter.LongestText])
	}
	if n, bytes := kept.Kept(); n != 1 || bytes != shardrouter.LongestText {
		t.Errorf("%d texts of %d bytes are kept, want the one of %d", n, bytes, shardrouter.LongestText)
	}
}
