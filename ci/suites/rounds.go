// What the programs in Go share: checks that stop a round, and the count of rounds.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

var background = context.Background()

// part is a round with its name.
type part struct {
	name string
	run  func()
}

// check stops a round: play prints what it stopped at.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func ensure(holds bool, what string, values ...any) {
	if !holds {
		panic(fmt.Errorf(what, values...))
	}
}

// fails checks that a call was refused with this code.
func fails(code string, err error) {
	var refused *azcore.ResponseError
	ensure(errors.As(err, &refused), "not refused with %s: %v", code, err)
	ensure(refused.ErrorCode == code, "%s in place of %s", refused.ErrorCode, code)
}

func run(round func()) (err error) {
	defer func() {
		if stopped := recover(); stopped != nil {
			err = fmt.Errorf("%v", stopped)
		}
	}()
	round()
	return nil
}

// play runs the chosen rounds, all if none is chosen. It prints each that fails and the totals, and
// exits with 1 if one failed.
func play(parts []part, chosen []string) {
	passed, failed := 0, 0
	for _, part := range parts {
		if len(chosen) > 0 && !slices.Contains(chosen, part.name) {
			continue
		}
		if err := run(part.run); err != nil {
			failed++
			fmt.Printf("FAILED %s: %.600s\n", part.name, strings.Join(strings.Fields(err.Error()), " "))
		} else {
			passed++
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
