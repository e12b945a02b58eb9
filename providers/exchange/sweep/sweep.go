// Package sweep chooses which points of a long sweep a test tries.
package sweep

import (
	"hash/fnv"
	"iter"
	"os"
	"strconv"
	"strings"
)

// T is the part of testing.TB that is needed: the program does not know the
// package testing.
type T interface {
	Helper()
	Name() string
	Fatalf(format string, args ...any)
}

// Points gives the points of 0 to n-1 that this run of the test tries, in rising
// order: one in so many, starting somewhere that the test's name decides, so that
// tests of one kind do not all try the same ones.
//
// ENROLL_TEST_EVERY is another number for "so many": 1 is the whole sweep.
// ENROLL_TEST_SHARD=2/8 gives the second eighth of those points, so that several
// processes share a sweep.
func Points(t T, n, usual int) iter.Seq[int] {
	t.Helper()
	every := usual
	if set := os.Getenv("ENROLL_TEST_EVERY"); set != "" {
		if every, _ = strconv.Atoi(set); every < 1 {
			t.Fatalf("ENROLL_TEST_EVERY wants a number from 1, not %q", set)
		}
	}
	shard, shards := 1, 1
	if set := os.Getenv("ENROLL_TEST_SHARD"); set != "" {
		k, of, _ := strings.Cut(set, "/")
		shard, _ = strconv.Atoi(k)
		if shards, _ = strconv.Atoi(of); shard < 1 || shard > shards {
			t.Fatalf("ENROLL_TEST_SHARD wants one of several, as 2/8, not %q", set)
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name())) // a hash takes everything
	first := int(h.Sum32() % uint32(every))
	return func(yield func(int) bool) {
		for i, point := 0, first; point < n; i, point = i+1, point+every {
			if i%shards == shard-1 && !yield(point) {
				return
			}
		}
	}
}
