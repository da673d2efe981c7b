//! Which runs a pull request or merge group needs: those of the blueprints that it concerns.
//!
//! A blueprint is concerned where a changed path is one of its triggers; without triggers, where it lies in the blueprint's folder.
//! What a blueprint asks for is read at the head and held to the policy of the default branch.

use async_trait::async_trait;
use blueproof_core::{
    domain::{
        Actor, BaseRef, BlueprintName, Job, Priority, ProfileName, QueueName, RequestKey, Retries,
        RunRequest, Subject,
    },
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic};
use globset::{GlobBuilder, GlobMatcher};

use crate::{
    api::{ChangedPaths, RepositoryId},
    key,
    payload::{CommitSha, RepositoryInfo},
    policy::Policy,
};

/// What blueprints there are at a commit, and what each asks for.
#[async_trait]
pub trait HeadBlueprints: Send + Sync {
    /// Returns the blueprints at a commit of a repository, read without executing anything of it. A job's source is that commit.
    async fn at(
        &self,
        repository: &RepositoryInfo,
        head: &CommitSha,
    ) -> Result<Vec<HeadBlueprint>, CallError>;
}

/// A blueprint at a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadBlueprint {
    /// Its name; of one that cannot be read, that of its folder.
    pub name: BlueprintName,
    /// Its folder, relative to the root; empty is the root.
    pub folder: String,
    /// Changed paths that ask for a run, as globs from the root, or from its folder with `./` in front. None is its folder.
    pub triggers: Vec<String>,
    /// What is carried out under each profile, or all that is wrong with it.
    pub variants: Result<Vec<HeadVariant>, Vec<Diagnostic>>,
}

/// A blueprint under a profile, or as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadVariant {
    /// The profile; `None` is the blueprint as it stands.
    pub profile: Option<ProfileName>,
    /// What is carried out.
    pub job: Job,
    /// How often it may be tried again.
    pub retries: Retries,
}

/// What a pull request needs.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// The runs of the blueprints that it concerns.
    pub runs: Vec<RunRequest>,
    /// The blueprints that it does not concern.
    pub unconcerned: Vec<PlannedBlueprint>,
    /// The blueprints that are not run, because the policy says so.
    pub untested: Vec<PlannedBlueprint>,
    /// What cannot be run as it is written.
    pub refused: Vec<Refused>,
}

/// A blueprint under a profile, or as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedBlueprint {
    /// Its name.
    pub name: BlueprintName,
    /// The profile; `None` is the blueprint as it stands.
    pub profile: Option<ProfileName>,
}

impl PlannedBlueprint {
    /// Returns the one that a run tests.
    pub fn of(subject: &Subject) -> Self {
        Self {
            name: subject.blueprint.clone(),
            profile: subject.profile.clone(),
        }
    }
}

/// What cannot be run as it is written.
#[derive(Debug, PartialEq)]
pub struct Refused {
    /// Which blueprint; `None` is all of them.
    pub blueprint: Option<PlannedBlueprint>,
    /// All that is wrong with it.
    pub problems: Vec<Diagnostic>,
}

impl Plan {
    /// Returns the plan where nothing can be read of the head.
    pub fn unreadable(problem: Diagnostic) -> Self {
        Self {
            refused: vec![Refused {
                blueprint: None,
                problems: vec![problem],
            }],
            ..Self::default()
        }
    }
}

/// A pull request or merge group whose runs are planned.
#[derive(Debug)]
pub struct Planned<'a> {
    /// Its repository.
    pub repository: RepositoryId,
    /// The number of the pull request; a merge group has none.
    pub pull_request: Option<u64>,
    /// The commit that is tested.
    pub head: &'a CommitSha,
    /// Who wrote it, as far as that is one person.
    pub author: Actor,
    /// The branch that it is to be merged into.
    pub base: BaseRef,
    /// What it changes.
    pub changed: &'a ChangedPaths,
    /// The policy of its repository.
    pub policy: &'a Policy,
    /// The queue that its runs wait in.
    pub queue: &'a QueueName,
}

impl Planned<'_> {
    /// Returns what the pull request needs, of the blueprints at its head.
    pub fn plan(&self, blueprints: Vec<HeadBlueprint>) -> Plan {
        let mut plan = Plan::default();
        let tested = blueprints
            .into_iter()
            .filter(|blueprint| self.policy.has_blueprints_in(&blueprint.folder));
        for blueprint in tested {
            self.add(blueprint, &mut plan);
        }
        plan
    }

    fn add(&self, blueprint: HeadBlueprint, plan: &mut Plan) {
        let is_concerned = blueprint.is_concerned_by(self.changed);
        let under = |profile: Option<ProfileName>| PlannedBlueprint {
            name: blueprint.name.clone(),
            profile,
        };
        let variants = match blueprint.variants {
            Ok(variants) => chosen(variants, &self.policy.runs.profiles),
            Err(_) if !is_concerned => return plan.unconcerned.push(under(None)),
            Err(problems) => {
                return plan.refused.push(Refused {
                    blueprint: Some(under(None)),
                    problems,
                });
            }
        };
        for variant in variants {
            if !is_concerned {
                plan.unconcerned.push(under(variant.profile));
                continue;
            }
            match self.too_much(&variant.job) {
                Some(problem) => plan.refused.push(Refused {
                    blueprint: Some(under(variant.profile)),
                    problems: vec![problem],
                }),
                None => plan.runs.push(self.request(&blueprint.name, variant)),
            }
        }
    }

    /// Returns what is wrong with a job that asks for more than the policy lets it.
    fn too_much(&self, job: &Job) -> Option<Diagnostic> {
        let (asked, most) = (job.gang().gpu, self.policy.runs.most_gpus?);
        let is_too_much = asked.0 > most;
        let message = format!(
            "it asks for {} GPUs, and the policy of the repository allows {most}",
            asked.0
        );
        is_too_much.then(|| {
            Diagnostic::error(Code::BadValue, message)
                .hint("ask for fewer, or have `spec.runs.mostGpus` of the default branch's policy changed")
        })
    }

    fn request(&self, blueprint: &BlueprintName, variant: HeadVariant) -> RunRequest {
        RunRequest {
            key: self.key(blueprint, variant.profile.as_ref()),
            subject: Subject {
                repository: self.repository.to_repository(),
                pull_request: self.pull_request,
                head: self.head.to_head(),
                base: Some(self.base.clone()),
                blueprint: blueprint.clone(),
                profile: variant.profile,
            },
            revision: None,
            requested_by: self.author.clone(),
            author: self.pull_request.map(|_| self.author.clone()),
            asked_from: None,
            queue: self.queue.clone(),
            priority: Priority::default(),
            retries: variant.retries,
            job: variant.job,
        }
    }

    /// Returns the key of a run: the same for the same content, whenever it is looked at.
    fn key(&self, blueprint: &BlueprintName, profile: Option<&ProfileName>) -> RequestKey {
        let repository = self.repository.0.to_string();
        let number = self
            .pull_request
            .map_or_else(|| "merge-group".to_owned(), |number| number.to_string());
        let profile = profile.map_or("", ProfileName::as_str);
        let head = self.head.as_str();
        key::of([
            &repository,
            &number,
            head,
            blueprint.as_str(),
            profile,
            self.base.as_str(),
        ])
    }
}

impl HeadBlueprint {
    /// Returns whether something that changed asks for a run. Where not everything is known that changed, it may.
    pub fn is_concerned_by(&self, changed: &ChangedPaths) -> bool {
        changed.is_cut_off || changed.paths.iter().any(|path| self.is_triggered_by(path))
    }

    /// Returns whether a file is of what its runs test: it lies in its folder, or triggers them.
    pub fn is_made_of(&self, path: &str) -> bool {
        self.within(path).is_some() || self.is_triggered_by(path)
    }

    fn is_triggered_by(&self, path: &str) -> bool {
        let within = self.within(path);
        if self.triggers.is_empty() {
            return within.is_some();
        }
        self.triggers
            .iter()
            .any(|trigger| match trigger.strip_prefix("./") {
                Some(relative) => within.is_some_and(|path| matches(relative, path)),
                None => matches(trigger, path),
            })
    }

    /// Returns a path relative to the blueprint's folder, where it lies there.
    fn within<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.folder.as_str() {
            "" => Some(path),
            folder => path.strip_prefix(folder)?.strip_prefix('/'),
        }
    }
}

fn matches(glob: &str, path: &str) -> bool {
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    // A glob that is none was refused when the blueprint was read; where it was not, a run too many does less harm than none.
    built.map_or(true, |glob| GlobMatcher::is_match(&glob.compile_matcher(), path))
}

/// Returns the variants under the profiles that are named, or as the blueprint stands where it has none of them.
fn chosen(variants: Vec<HeadVariant>, profiles: &[ProfileName]) -> Vec<HeadVariant> {
    let is_named = |variant: &HeadVariant| {
        variant
            .profile
            .as_ref()
            .is_some_and(|profile| profiles.contains(profile))
    };
    let any_named = variants.iter().any(is_named);
    let wanted = |variant: &HeadVariant| match any_named {
        true => is_named(variant),
        false => variant.profile.is_none(),
    };
    variants.into_iter().filter(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blueprint(folder: &str, triggers: &[&str]) -> HeadBlueprint {
        HeadBlueprint {
            name: "nano-lm".parse().expect("a name"),
            folder: folder.into(),
            triggers: triggers.iter().map(|&trigger| trigger.into()).collect(),
            variants: Ok(Vec::new()),
        }
    }

    fn changed(paths: &[&str]) -> ChangedPaths {
        ChangedPaths {
            paths: paths.iter().map(|&path| path.into()).collect(),
            is_cut_off: false,
        }
    }

    #[test]
    fn a_blueprint_is_concerned_by_its_folder_or_by_its_triggers() {
        let folder = "examples/nano-lm";
        let cases: [(&str, &[&str], &str, bool); 12] = [
            (folder, &[], "examples/nano-lm/nano-lm.ipynb", true),
            (folder, &[], "examples/nano-lm/deep/er.py", true),
            (folder, &[], "examples/nano-lm-2/a.py", false),
            (folder, &[], "examples/nano-lm", false),
            (folder, &[], "README.md", false),
            ("", &[], "README.md", true),
            (folder, &["pkg/**"], "pkg/a/b.py", true),
            (folder, &["pkg/**"], "examples/nano-lm/nano-lm.ipynb", false),
            (folder, &["./*.ipynb"], "examples/nano-lm/nano-lm.ipynb", true),
            (folder, &["./*.ipynb"], "examples/nano-lm/deep/a.ipynb", false),
            (folder, &["./*.ipynb"], "nano-lm.ipynb", false),
            (folder, &["["], "README.md", true),
        ];
        for (folder, triggers, path, expected) in cases {
            let concerned = blueprint(folder, triggers).is_concerned_by(&changed(&[path]));
            assert_eq!(concerned, expected, "{folder} {triggers:?} {path}");
        }
        assert!(!blueprint(folder, &[]).is_concerned_by(&changed(&[])));
    }

    #[test]
    fn where_not_all_is_known_that_changed_every_blueprint_is_concerned() {
        let cut_off = ChangedPaths {
            is_cut_off: true,
            ..ChangedPaths::default()
        };
        assert!(blueprint("a", &[]).is_concerned_by(&cut_off));
    }
}
