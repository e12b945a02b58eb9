package schema

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// thousandBlocks is a site of 1,000 blocks in ten files.
func thousandBlocks() fstest.MapFS {
	files := fstest.MapFS{"site.hcl": {Data: []byte(minimal("", "  bmc {\n    credential = secret(\"bmc-${device.name}\", \"password\")\n    hostname = local.l7\n    ntp {\n      servers = [var.v1, \"ntp1.example.net\"]\n    }\n  }\n"))}}
	for n := range 9 {
		var b strings.Builder
		for i := range 111 {
			fmt.Fprintf(&b, "variable \"v%d\" {\n  type        = string\n  default     = \"v%d.example.net\"\n  description = \"number %d\"\n}\n", n*111+i, i, i)
		}
		for i := range 10 {
			fmt.Fprintf(&b, "locals {\n  l%d = \"${var.v%d}\"\n}\n", n*10+i, n*111+i)
		}
		files[fmt.Sprintf("more%d.hcl", n)] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return files
}

// BenchmarkLoad decodes a site of 1,000 blocks: at most 50 ms and 30 MB.
func BenchmarkLoad(b *testing.B) {
	files := thousandBlocks()
	b.ReportAllocs()
	for b.Loop() {
		if _, ds := Load("", Options{Files: files}); ds.HasErrors() {
			b.Fatal(ds)
		}
	}
}

// BenchmarkSettings evaluates the per-device expressions of one device: at most
// 50 µs.
func BenchmarkSettings(b *testing.B) {
	file, ds := Load(filepath.Join("..", "sites", "fra7"), Options{})
	if file == nil {
		b.Fatal(ds)
	}
	intent := device()
	b.ReportAllocs()
	for b.Loop() {
		if _, ds := file.Settings(intent); ds.HasErrors() {
			b.Fatal(ds)
		}
	}
}

// BenchmarkSites reads the three sites that look like real ones.
func BenchmarkSites(b *testing.B) {
	for b.Loop() {
		for _, name := range []string{"lon14", "fra7", "osl2"} {
			if file, ds := Load(filepath.Join("..", "sites", name), Options{}); file == nil {
				b.Fatal(ds)
			}
		}
	}
}
