// How long client-go's own queue takes for a million keys, from some producers to as many workers:
// nanoseconds per key, once for each round. With the Go toolchain, in this folder:
//
//	go mod init bench && go get k8s.io/client-go@32ce75a && go build -o client-go .
//	cargo run --profile bench -p requeue-bench --bin client-go -- ./client-go
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const keys = 1_000_000

func main() {
	producers, _ := strconv.Atoi(os.Args[1])
	workers, _ := strconv.Atoi(os.Args[2])
	rounds, _ := strconv.Atoi(os.Args[3])
	for range rounds {
		fmt.Println(float64(round(producers, workers).Nanoseconds()) / keys)
	}
}

func round(producers, workers int) time.Duration {
	queue := workqueue.NewTyped[uint64]()
	var producing, working sync.WaitGroup
	begun := time.Now()
	for range workers {
		working.Go(func() {
			for {
				key, closed := queue.Get()
				if closed {
					return
				}
				queue.Done(key)
			}
		})
	}
	for producer := range producers {
		producing.Go(func() {
			for key := producer; key < keys; key += producers {
				queue.Add(uint64(key))
			}
		})
	}
	producing.Wait()
	queue.ShutDown()
	working.Wait()
	return time.Since(begun)
}
