// Holds the fake of the service to GitHub's own client: everything that a listener does, once, with its answers checked.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/actions/scaleset"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: scale-set-conformance URL-OF-THE-FAKE")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base string) error {
	client, err := scaleset.NewClientWithPersonalAccessToken(scaleset.NewClientWithPersonalAccessTokenConfig{
		GitHubConfigURL:     base + "/owner/repository",
		PersonalAccessToken: "a-token",
		SystemInfo:          scaleset.SystemInfo{System: "conformance", Subsystem: "listener"},
	})
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	group, err := client.GetRunnerGroupByName(ctx, scaleset.DefaultRunnerGroup)
	if err != nil {
		return fmt.Errorf("find the default group: %w", err)
	}
	set, err := client.GetRunnerScaleSet(ctx, group.ID, "gpu")
	if err != nil || set == nil {
		return fmt.Errorf("find the scale set: %v, %w", set, err)
	}
	if err := listen(ctx, client, set.ID); err != nil {
		return err
	}
	return runners(ctx, client, set.ID)
}

// listen takes the one job that waits.
func listen(ctx context.Context, client *scaleset.Client, set int) error {
	session, err := client.MessageSessionClient(ctx, set, "conformance")
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	if _, err := client.MessageSessionClient(ctx, set, "another"); err == nil {
		return errors.New("a second session was opened")
	}
	message, err := session.GetMessage(ctx, 0, 1)
	if err != nil || message == nil || len(message.JobAvailableMessages) != 1 {
		return fmt.Errorf("receive the offer: %+v, %w", message, err)
	}
	request := message.JobAvailableMessages[0].RunnerRequestID
	granted, err := session.AcquireJobs(ctx, []int64{request})
	if err != nil || len(granted) != 1 || granted[0] != request {
		return fmt.Errorf("acquire job %d: %v, %w", request, granted, err)
	}
	if err := session.DeleteMessage(ctx, message.MessageID); err != nil {
		return fmt.Errorf("acknowledge the offer: %w", err)
	}
	assigned, err := session.GetMessage(ctx, message.MessageID, 1)
	if err != nil || assigned == nil || len(assigned.JobAssignedMessages) != 1 {
		return fmt.Errorf("receive the assignment: %+v, %w", assigned, err)
	}
	if assigned.Statistics == nil || assigned.Statistics.TotalAssignedJobs != 1 {
		return fmt.Errorf("statistics do not have the job: %+v", assigned.Statistics)
	}
	if err := session.DeleteMessage(ctx, assigned.MessageID); err != nil {
		return fmt.Errorf("acknowledge the assignment: %w", err)
	}
	nothing, err := session.GetMessage(ctx, assigned.MessageID, 1)
	if err != nil || nothing != nil {
		return fmt.Errorf("poll while nothing is new: %+v, %w", nothing, err)
	}
	if err := session.Close(ctx); err != nil {
		return fmt.Errorf("close the session: %w", err)
	}
	return nil
}

// runners registers a runner, and removes it twice.
func runners(ctx context.Context, client *scaleset.Client, set int) error {
	setting := &scaleset.RunnerScaleSetJitRunnerSetting{Name: "gpu-1", WorkFolder: "_work"}
	config, err := client.GenerateJitRunnerConfig(ctx, setting, set)
	if err != nil || config.EncodedJITConfig == "" {
		return fmt.Errorf("get a runner's configuration: %w", err)
	}
	if _, err := client.GenerateJitRunnerConfig(ctx, setting, set); !errors.Is(err, scaleset.RunnerExistsError) {
		return fmt.Errorf("a name was given twice: %w", err)
	}
	found, err := client.GetRunnerByName(ctx, "gpu-1")
	if err != nil || found == nil || found.ID != config.Runner.ID {
		return fmt.Errorf("find the runner: %+v, %w", found, err)
	}
	for range 2 {
		if err := client.RemoveRunner(ctx, int64(found.ID)); err != nil {
			return fmt.Errorf("remove the runner: %w", err)
		}
	}
	if _, err := client.GetRunner(ctx, found.ID); !errors.Is(err, scaleset.RunnerNotFoundError) {
		return fmt.Errorf("the runner is still there: %w", err)
	}
	return nil
}
