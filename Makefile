# The first target is help: `make` alone shows what there is.
GO      ?= go
VERSION ?= 0.1.0-dev+$(shell git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Run by `go run`, not through the tool directive: its two hundred modules would
# otherwise take part in the version selection of the program itself.
LINT_VERSION := v2.15.0
LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

.PHONY: help build demo test fmt-check vet lint unit lab-up lab-test lab-down bench fmt docs clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/enroll, static, with its version
	@echo "building bin/enroll (the first time compiles all dependencies, some minutes)"
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/enroll ./cmd/enroll

demo: build ## plan, apply and plan again a fresh GPU server in the embedded lab
	@testdata/demo.sh bin/enroll

test: fmt-check vet lint unit ## everything that needs no service: format, vet, lint, all tests with -race

fmt-check:
	@out=$$(gofmt -l cmd plan providers schema); if [ -n "$$out" ]; then echo "not formatted (run make fmt):"; echo "$$out"; exit 1; fi

vet:
	@$(GO) vet ./...
	@$(GO) vet -tags lab ./...

unit:
	@$(GO) test -race -timeout 20m ./...

lint: ## run the linters
	@$(LINT) run --allow-serial-runners ./...

lab-up: ## install, start and seed the real NetBox, Ironic, sushy-tools, sshd and DHCP servers
	@testdata/lab/up.sh

lab-test: lab-up ## conformance suites and end-to-end run against the real services
	@testdata/lab/test.sh

lab-down: ## end the real lab
	@testdata/lab/down.sh

bench: ## benchmarks
	@$(GO) test -run '^$$' -bench . -benchmem ./...

fmt: ## format the code
	@gofmt -w cmd plan providers schema

docs: ## write the generated pages anew
	@$(GO) test ./plan ./schema ./cmd/enroll -run Generated -update

clean: ## remove what was built
	@rm -rf bin .demo
