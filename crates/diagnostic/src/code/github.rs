//! Codes from BP1101 to BP1199: GitHub, what comes from there, and what is shown there.

macro_rules! github {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    1101 GitHubNotReached "GitHub does not answer"
        "GitHub's API was not reached, or answered with an error of its own. Nothing is lost: what was to be read or shown is \
         tried again, and running attempts go on. https://www.githubstatus.com says whether it is GitHub's own outage."
    1102 GitHubRefuses "a request that GitHub refuses"
        "GitHub answered that there is no such thing, or that our App has no right to it. The App may have been removed from \
         the repository, lack a permission, or the repository may be gone. The message has GitHub's name for the request."
    1103 GitHubRateLimited "a used up rate limit of GitHub's API"
        "GitHub answers no more requests of our App until the time that the message names. What waits for them is done \
         afterwards. Other programs with the same App or token share the limit."
    1104 DeliveryUnreadable "a delivery that cannot be read"
        "A webhook was signed correctly, but its body is no JSON, or lacks something that is needed. It is kept as it came: \
         `blueproof webhook show ID` prints it, and `blueproof webhook replay ID` has it worked on again, such as by a newer version."
    1105 EntitlementUnreadable "a repository whose approvers cannot be told"
        "OWNERS, OWNERS_ALIASES or `.github/blueproof.yaml` of the repository's default branch cannot be read. Until that is \
         repaired no approval is taken there; those who were entitled before stay so, and what they approved stays approved."
    1106 CheckRunUpdateLater "a check run that is updated a little later"
        "A check run whose run only progresses is updated at most every 15 seconds, because GitHub limits how often Apps change \
         anything. Nothing is wrong: the newest progress is sent when that time is over, and a change of the run's state at once."
    1107 PullRequestChanged "a pull request that is not as it was approved"
        "GitHub is asked once more before content of a pull request starts, and showed another head or base than was approved, \
         that it is closed, or that whoever approved it may not do so any more. Nothing was started. The pull request is looked \
         at anew, and what it has now needs an approval of its own."
    1108 ScaleSetUnusable "a runner scale set that cannot be used"
        "The scale set of a `RunnerScaleSet` could not be found, created or listened to: its runner group does not exist, the App \
         or token lacks the right to self-hosted runners, or another program has the scale set. Other scale sets go on."
    1109 JobRefused "a job that may not start"
        "A runner asked, before the first step of a job, whether the job may start. It may where its workflow run is of an event \
         that is trusted, or of a commit that is approved. No answer counts as a refusal. Approve the commit, and run the job again."
    1111 DeliveryUnknown "a delivery that is not stored"
        "No delivery of this id is stored, or several begin with what was typed of it. A delivery that GitHub could not send is listed in \
         the App's settings on GitHub, under `Advanced`, and is sent again from there; old ones are removed from the store."
    1112 DeliveryNotTaken "a delivery that was not taken"
        "What `blueproof webhook send` sent did not reach a receiver, or was refused by it; the answer says why. A refused signature \
         means that the secret is not that of the receiver."
    1113 AppFileExists "a file that an App's registration would overwrite"
        "`blueproof github app create` writes the private key, the secret of the webhook and the connection of a new App, and overwrites \
         nothing: a key that is lost cannot be had again. Name another folder, or move the files away if they are not needed."
    1114 AppNotReady "an App that was not registered, or not installed, in time"
        "`blueproof github app create` waits until somebody agrees on GitHub's page, and then until the App is installed. Where it was \
         registered, its key and secret are written: install it on the page that the message names, and write the connection with the \
         number at the end of the installation's address. Where it was not, start the command again."
    }};
}
