"""The register of reasons: every code that an error, a fault or a verdict can carry.

`docs/reasons.md` is made from it (`nox -s schemas -- --write`). A new reason is one entry below its heading. Codes are
stable: other programs read them. Import this where an error is shown, not where one is raised.
"""

# long because: it is one table, an entry a code

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Literal, NamedTuple


class Entry(NamedTuple):
    """What there is to know about a code. `mend` is what to do where the error itself names nothing better.

    Exit 0 is for what is counted and told, and refuses nothing.
    """

    exit: Literal[0, 1, 2, 3]
    title: str
    meaning: str
    mend: str = ""


#: By heading, the codes below it.
GROUPS: Final[dict[str, dict[str, Entry]]] = {
    "Usage": {
        "usage": Entry(2, "Wrong usage", "A command or function was called with arguments that do not fit."),
        "k-malformed": Entry(2, "Wrong k", "The number of results to look at has to be 1 or more."),
        "name-malformed": Entry(
            2,
            "Wrong name",
            "A name becomes a file name, so it has to consist of lower-case letters, digits and the signs . _ - alone.",
        ),
        "override-malformed": Entry(
            2,
            "Wrong --source",
            "The place of a source is given as NAME=PATH, once for each source.",
        ),
        "override-ambiguous": Entry(
            2,
            "Ambiguous environment variable",
            "One environment variable gives the place of several sources.",
        ),
        "override-inline": Entry(
            2,
            "Place for an inline source",
            "The documents of an inline source are in the set itself, so no other place can be given for it.",
            "Leave out --source for it.",
        ),
        "override-unknown": Entry(
            2,
            "Unknown source",
            "A place was given for a source that no set has.",
        ),
        "out-exists": Entry(
            2,
            "Output exists",
            "The folder for a new set is there already, and a new set replaces nothing.",
        ),
        "out-is-dataset": Entry(
            2,
            "Output is the dataset",
            "The rebuilt corpus would replace the files of the set that it is built from.",
            "Name another folder with --out.",
        ),
        "path-malformed": Entry(
            2,
            "Path is not UTF-8",
            "The path holds bytes that are not UTF-8, and a TOML file cannot hold it.",
            "Rename the folder, or move it.",
        ),
        "part-of-a-set": Entry(
            2, "Part of a set", "The file is a part of a set and cannot be validated alone."
        ),
        "not-validated": Entry(
            2,
            "Not validated",
            "The file or folder is not what `validate` checks.",
            "Name the folder of a set, a report, a file of policy/evidence, or eval.toml.",
        ),
        "part-of-the-policy": Entry(
            2, "Part of the policy", "The file is a part of the policy, which eval-gate reads, not eval-core."
        ),
        "report-with-qrels": Entry(
            2,
            "Report with --qrels",
            "A report holds its judgements; --qrels goes with runs.",
        ),
        "run-without-qrels": Entry(
            2,
            "Run without --qrels",
            "A run holds rankings alone, so judgements are needed to score it.",
        ),
        "target-empty": Entry(2, "Empty target", "The branch to be held against was given as an empty text."),
        "root-missing": Entry(2, "No folder to search", "The folder that should be searched does not exist."),
        "platform": Entry(3, "Unsupported platform", "This part does not work on this operating system."),
    },
    "Files": {
        "file-missing": Entry(
            2,
            "File missing",
            "The file that was named, or that another one refers to, does not exist.",
        ),
        "file-unreadable": Entry(
            2,
            "File not readable",
            "What is there under the name cannot be read as a file of this kind: a folder, a pipe, a damaged archive.",
        ),
        "read-failed": Entry(
            3,
            "Reading failed",
            "The file is there, and the operating system did not let it be read.",
            "Check its permissions, and the disk.",
        ),
        "merge-conflict": Entry(
            2,
            "Merge conflict",
            "The file holds the marks that git leaves where two branches changed the same lines.",
        ),
        "file-malformed": Entry(
            2,
            "Wrong file format",
            "The file is not UTF-8, or not in the format that is read here.",
        ),
        "file-unknown": Entry(
            2, "Unknown kind of file", "The ending of the name tells nothing about the format."
        ),
        "file-vacuous": Entry(2, "Empty file", "The file is sound, and there is nothing in it."),
        "file-changed": Entry(
            3,
            "File changed meanwhile",
            "Another process changed the file while it was being read or rewritten.",
            "Run the command again.",
        ),
        "input-invalid": Entry(
            2,
            "Invalid input",
            "One or more places of the input are wrong; each is listed with file and line.",
        ),
        "output-is-input": Entry(
            2,
            "Output is an input",
            "The place to write to is one that the command reads, such as the policy or the set.",
            "Name a file or folder elsewhere.",
        ),
        "cannot-write": Entry(
            3,
            "Cannot write",
            "A file or folder could not be written.",
            "Check permissions and free space.",
        ),
        "internal-error": Entry(
            3, "Fault of the program", "The program contradicted itself; your input is not at fault."
        ),
        "git-failed": Entry(
            3, "git failed", "A git command that the self-test or the demonstration needs did not succeed."
        ),
        "half-written": Entry(
            3,
            "Half written",
            "The second of two files could not be written, and the first could not be put back.",
        ),
    },
    "Configuration": {
        "config-missing": Entry(
            2, "No eval.toml", "There is no configuration of arms where it was looked for."
        ),
        "retriever-ambiguous": Entry(
            2, "Ambiguous name", "A backend and an arm have the name of what is to be compared."
        ),
        "arm-unknown": Entry(2, "Unknown arm", "There is no arm of this name, and no report of it."),
        "arms-none": Entry(
            2, "No arm to measure", "Every arm is in another lane than that of pull requests."
        ),
        "cutoffs-invalid": Entry(
            2,
            "Wrong cut-offs",
            "The cut-offs or the headline need more documents than the limit asks for, or are not in rising order.",
            "Raise limit, or take smaller cut-offs.",
        ),
        "no-query": Entry(2, "Nothing selected", "The arm selects no query of its set."),
        "dataset-name-twice": Entry(
            2,
            "Dataset name twice",
            "Two sets have one name, so their corpora and reports would replace each other.",
        ),
    },
    "Sets": {
        "dataset-missing": Entry(
            2,
            "Dataset missing",
            "The folder is not a set: it, its corpus, its queries or its judgements are missing.",
        ),
        "split-unknown": Entry(2, "Unknown split", "The set has no judgements of this split."),
        "document-unknown": Entry(
            2,
            "Unknown document",
            "A judgement or an exclusion names a document that is not in the corpus.",
        ),
        "queries-in-corpus": Entry(
            2,
            "Copy of the queries",
            "A document holds, word for word, at least five of the queries of four words or more and more than half of "
            "them, and is relevant to none of those: a golden file that lies among what is searched. It would be found "
            "for nearly every query. A page that answers the queries that it holds is judged so, and is no copy.",
            "Leave it out of the corpus, by exclude of its source, or let the queries exclude it.",
        ),
        "judged-document-absent": Entry(
            3,
            "Judged document gone",
            "A source that moves no longer has a document that the set judges.",
            "Judge what took its place, or pin the source.",
        ),
        "query-unknown": Entry(2, "Unknown query", "The report has no query of this id."),
        "manifest-form-unknown": Entry(
            2, "Unknown manifest", "The JSON file is not a manifest in one of the forms that are read."
        ),
        "manifest-invalid": Entry(2, "Invalid manifest", "A value of the manifest is missing or wrong."),
        "importer-unknown": Entry(
            2, "Unknown format", "No installed package has an importer for the format."
        ),
        "importer-ambiguous": Entry(
            2, "Ambiguous format", "Several installed packages have an importer for the format."
        ),
        "importer-broken": Entry(
            3, "Broken importer", "The importer is installed, and it cannot be imported."
        ),
        "extra-missing": Entry(
            3, "Optional package missing", "The format is read by a package that is not installed by default."
        ),
        "field-unclear": Entry(
            2,
            "Field not found",
            "No field of the records can be taken for what is needed, or several can.",
            "Name the field.",
        ),
        "field-empty": Entry(2, "Empty field", "The field is empty in every record, so it says nothing."),
        "corpus-unclear": Entry(
            2,
            "Which corpus",
            "The documents of a set come from its file or from --corpus: from one of them.",
        ),
        "import-empty": Entry(
            2,
            "Nothing to import",
            "No query is left: each has no expected document, or one that cannot be found.",
            "Look at --corpus and --match.",
        ),
        "no-drafts": Entry(
            1,
            "Nothing to draft from",
            "No text was found that could be drafted into a question.",
            "Name another folder, or widen --include.",
        ),
        "marks-missing": Entry(
            2,
            "No marks in the page",
            "The page does not hold the pair of comment lines between which the table goes.",
        ),
        "page-stale": Entry(
            1,
            "Page out of date",
            "The page does not hold the figures that would be written now.",
            "Run the command without --check.",
        ),
    },
    "LongMemEval": {
        "record-invalid": Entry(
            2,
            "Invalid record",
            "A record of a LongMemEval file lacks a field, or holds in it what cannot be right.",
            "Download the file again; if it was edited, mend the record.",
        ),
        "download-incomplete": Entry(
            2,
            "Not the whole file",
            "What was saved is a part of the file, or a page or pointer in its place.",
            "Download it again, and compare its size with that of the release.",
        ),
        "format-unsupported": Entry(
            2,
            "Other format",
            "The file is of another benchmark, from which no judged set can be made.",
        ),
        "evidence-unmarked": Entry(
            2,
            "Evidence not marked",
            "The file does not mark which turns are evidence, and without that the chosen judgements cannot be made.",
        ),
    },
    "Corpus": {
        "corpus-absent": Entry(3, "Corpus not built", "The corpus of the set was not reconstructed yet."),
        "corpus-stale": Entry(
            3, "Corpus out of date", "The corpus was built by another recipe than the set has now."
        ),
        "corpus-empty": Entry(2, "Empty corpus", "There is no text to search below the folder."),
        "recipe-missing": Entry(
            2,
            "No recipe",
            "The set has no sources to rebuild its corpus from; its corpus file is used as it is.",
        ),
        "source-absent": Entry(
            3,
            "Source absent",
            "A source of the corpus is not on this machine, or could not be fetched.",
        ),
        "source-empty": Entry(
            2,
            "Empty source",
            "The source gave no document.",
            "Check its include, exclude and root.",
        ),
        "url-unknown": Entry(
            2, "Unknown URL", "The address of a repository is of a kind that cannot be fetched."
        ),
        "branch-absent": Entry(3, "Branch absent", "The repository has no branch of this name."),
        "branch-malformed": Entry(2, "Wrong branch name", "git allows no branch of this name."),
        "commit-absent": Entry(3, "Commit absent", "The repository does not have the commit."),
        "commit-wrong-type": Entry(
            2, "Not a commit", "The id is of a tag, a tree or a file, not of a commit."
        ),
        "object-absent": Entry(3, "Object absent", "The clone is partial and lacks an object of the commit."),
        "repository-damaged": Entry(
            3,
            "Damaged repository",
            "git could not read an object, or its content does not fit its id.",
            "Clone the repository again; git fsck shows what is damaged.",
        ),
        "repository-owner": Entry(
            3,
            "Repository of another owner",
            "git refuses to read a repository that belongs to another user, so no commit can be named.",
            "git config --global --add safe.directory PATH",
        ),
        "repository-untrusted": Entry(
            3,
            "Repository above of another owner",
            "The folder is not a repository, and the repository around it belongs to another user.",
        ),
        "git-missing": Entry(3, "git is missing", "A git source needs git.", "Install git."),
        "pip-missing": Entry(
            3, "pip is missing", "An archive source is fetched by pip, and it is not installed."
        ),
        "archive-digest-differs": Entry(
            3,
            "Another archive",
            "The archive does not have the digest that the recipe pins, so it was not used.",
            "Fetch the pinned archive, or pin the new one in dataset.toml.",
        ),
    },
    "Backends": {
        "backend-unknown": Entry(2, "Unknown backend", "No installed package has a backend of this name."),
        "demo-backend-missing": Entry(
            3,
            "No bm25 for the demonstration",
            "The demonstration measures bm25, and no installed package has it.",
            "Install packages/backends of this repository beside eval-gate.",
        ),
        "backend-ambiguous": Entry(
            2, "Ambiguous backend", "Several installed packages have a backend of this name."
        ),
        "backend-broken": Entry(
            3,
            "Broken backend",
            "The backend is installed, and it cannot be imported, made or described.",
            "eval-backends list  shows every backend with its state.",
        ),
        "backend-start-failed": Entry(
            3, "Backend did not start", "The command of a backend could not be started, or did not answer."
        ),
        "backend-failed": Entry(3, "Backend failed", "The backend raised an error as it indexed the corpus."),
        "capability-missing": Entry(
            2,
            "Missing capability",
            "The arm, or every query of its set, asks for something that its backend does not say that it can do.",
            "Where the command can do it, say so in options.capabilities; else take the wish out of the arm, or take "
            "another backend.",
        ),
        "capability-unknown": Entry(
            2, "Unknown capability", "The backend declares a capability that does not exist."
        ),
        "option-unknown": Entry(2, "Unknown option", "The backend has no such option."),
        "option-missing": Entry(2, "Missing option", "The backend cannot be made without the option."),
        "option-invalid": Entry(2, "Wrong option value", "The option of a backend has a wrong value."),
        "id-repeated": Entry(
            3,
            "Repeated id",
            "Two documents of the corpus have one id.",
            "eval-core validate SET  names the lines.",
        ),
    },
    "Measuring": {
        "resume-task-differs": Entry(
            1,
            "Another task than before",
            "The interrupted run measured another task, so it cannot be resumed.",
        ),
        "resume-system-differs": Entry(
            1,
            "Another system than before",
            "The interrupted run measured another system, so it cannot be resumed.",
        ),
        "queries-errored": Entry(
            3,
            "Queries errored",
            "The backend gave no sound answer to some queries.",
            "Mend the backend and run it again.",
        ),
        "comparison-vacuous": Entry(
            1,
            "Vacuous comparison",
            "No query was asked, or every backend scored zero, so nothing was shown.",
        ),
        "comparison-malformed": Entry(
            1,
            "Malformed comparison",
            "The file of a comparison is not sound.",
            "Run the comparison again.",
        ),
        "ground-truth-outside": Entry(
            2, "Ground truth outside", "The manifest judges a path that leads out of the folder to search."
        ),
    },
    "Scoring": {
        "measure-unknown": Entry(
            2, "Unknown measure", "There is no measure of this name, or the runs do not hold it."
        ),
        "run-empty": Entry(2, "Empty run", "The run answers nothing that could be scored."),
        "run-malformed": Entry(
            2,
            "Malformed run",
            "The file is not a run in a format that is read, or a ranking of it is not sound.",
        ),
        "run-unjudged": Entry(
            2, "Run of other queries", "The run and the judgements have no query in common."
        ),
        "judgements-empty": Entry(2, "No judgements", "There is no judgement to score against."),
        "judgements-malformed": Entry(2, "Malformed judgements", "The file does not hold judgements."),
        "nothing-relevant": Entry(
            2, "Nothing is relevant", "No query has a relevant document, so none can be found."
        ),
        "nothing-scored": Entry(
            2,
            "Nothing was scored",
            "No query was answered in such a way that it could be scored.",
            "Measure again.",
        ),
        "grade-too-large": Entry(2, "Grade too large", "A grade is too large for the exponential gain."),
    },
    "Comparing": {
        "task-differs": Entry(
            1,
            "Different tasks",
            "The sides answered different tasks: another set, limit or filter. Their figures cannot be compared.",
            "Measure both on the same set, with the same limit and filter.",
        ),
        "no-common-query": Entry(1, "No common query", "No query was scored on both sides."),
        "cutoff-beyond-limit": Entry(
            1, "Cut-off beyond the limit", "The measure looks at ranks that were not asked for or not kept."
        ),
        "measure-undefined": Entry(1, "Undefined measure", "The measure has no value on these judgements."),
    },
    "Reports": {
        "report-missing": Entry(
            1,
            "Report missing",
            "There is no report of the arm, or it cannot be read.",
            "eval-core measure ARM",
        ),
        "archive-malformed": Entry(
            1,
            "Malformed upload",
            "What a CI job uploaded is not a folder or zip file of sound reports.",
            "Take what the job uploaded, as it was downloaded.",
        ),
        "report-malformed": Entry(
            1,
            "Malformed report",
            "The report is not whole, contradicts itself, or was not written by measuring.",
            "eval-core measure ARM",
        ),
        "report-of-another-arm": Entry(
            1, "Report of another arm", "The file holds the report of another arm."
        ),
        "report-resumed": Entry(
            1, "Resumed report", "The run was interrupted and resumed, so its times mean nothing."
        ),
        "report-stale": Entry(
            1, "Stale report", "The report was measured before something that it depends on changed."
        ),
        "report-stripped": Entry(
            1, "Stripped report", "The report lacks rows or fields that measuring writes."
        ),
        "report-tracked": Entry(
            1,
            "Tracked report",
            "The report is under version control, where it can be older than what it reports on.",
            "git rm --cached  takes it out.",
        ),
        "rows-errored": Entry(
            1,
            "Rows errored",
            "The backend failed on some queries, or was not asked, so the means say nothing.",
            "Mend the backend and measure again.",
        ),
        "provenance-missing": Entry(
            1, "No provenance", "The report has no statement of what produced it.", "Measure again."
        ),
        "provenance-malformed": Entry(
            1, "Malformed provenance", "The statement beside the report is not sound.", "Measure again."
        ),
        "provenance-subject-differs": Entry(
            1,
            "Provenance of another report",
            "The statement is about other bytes than the report's.",
            "Measure again.",
        ),
        "provenance-diverges": Entry(
            1,
            "Provenance diverges",
            "The report was produced by something else than its statement or eval.toml says.",
            "Measure what eval.toml says now, or waive it in policy/waivers.toml.",
        ),
        "provenance-unseen": Entry(
            1,
            "Provenance not looked at",
            "The policy requires provenance, and there is no eval.toml to look at.",
        ),
        "fingerprint-differs": Entry(
            1,
            "Another producer",
            "The report was produced by another system than the one that its floors stand on.",
        ),
    },
    "Publishing": {
        "mark-malformed": Entry(2, "Malformed mark", "A mark in a page is not written as marks are."),
        "mark-unknown": Entry(2, "Unknown mark", "A mark asks for a figure that does not exist."),
        "page-unreadable": Entry(2, "Page not readable", "A page cannot be read, or is not UTF-8."),
        "publish-differs": Entry(
            1, "Published figure differs", "A page states another figure than its source."
        ),
        "publish-vacuous": Entry(
            1, "Nothing is published", "No page states a figure, so nothing was checked."
        ),
        "from-missing": Entry(1, "No published values", "The file of values that marks refer to is missing."),
        "from-malformed": Entry(1, "Malformed published values", "The file of values is not sound JSON."),
        "key-unknown": Entry(1, "Unknown key", "The file of values does not have the key of a mark."),
        "value-unfit": Entry(1, "Unfit value", "The value under the key cannot stand in a page."),
    },
    "Policy": {
        "floors-missing": Entry(2, "No floors", "The policy has no floors, so there is nothing to gate on."),
        "floors-vacuous": Entry(1, "Vacuous floors", "The arm has no floor: whatever it scored would pass."),
        "floors-deleted": Entry(
            1, "Deleted floors", "The arm has evidence and no floors: they were taken out."
        ),
        "floors-without-evidence": Entry(
            1, "Floors without evidence", "Fewer than two measured runs give the floors."
        ),
        "floor-vacuous": Entry(1, "Vacuous floor", "A random ranking of the documents reaches the floor."),
        "floor-not-derived": Entry(
            1, "Floor that does not follow", "A figure of the floors is not the one that the evidence gives."
        ),
        "runs-misordered": Entry(
            1, "Runs out of order", "The runs of an arm are not listed in the order of their start."
        ),
        "reason-missing": Entry(1, "No reason", "The choice needs a reason, and the file has none."),
        "corpus-pinned": Entry(
            1, "Pinned corpus", "The floors let the corpus drift, and no source of it moves."
        ),
        "policy-outdated": Entry(
            2, "Outdated policy", "The policy is written in a form that is not read any more."
        ),
        "policy-vacuous": Entry(
            1, "Vacuous policy", "No arm is held to anything.", "Write floors:  eval-gate floor"
        ),
        "gate-outdated": Entry(2, "Outdated gate", "The policy asks for a newer eval-gate than this one."),
        "unbound": Entry(
            2,
            "Unbound floors",
            "The floors name no task, so a verdict on them holds for whatever the report measured.",
            "Write bound floors:  eval-gate floor --write",
        ),
        "target-policy-malformed": Entry(
            2, "Malformed policy of the target", "The policy of the target branch cannot be read."
        ),
        "reason-unneeded": Entry(
            2, "Reason without a use", "A reason was given under a key that lets nothing more pass."
        ),
        "policy-linked": Entry(
            1,
            "Linked policy",
            "A file or folder of the policy is a symbolic link, so what a branch changes of it would lie elsewhere.",
            "Put the file itself in its place.",
        ),
        "policy-outside": Entry(
            2, "Policy outside", "The policy lies outside of the repository, so no commit has it."
        ),
        "baseline-missing": Entry(
            2, "No baseline", "The arm has no floors, and so no baseline to compare with."
        ),
        "bar-loosened": Entry(
            1,
            "Loosened bar",
            "The policy asks for less than that of the target branch, and gives no new reason.",
            "Take it back, or say why:  eval-gate floor ARM --reason …",
        ),
        "promotion-rules-differ": Entry(
            1, "Other promotion rules", "The rules of promotion differ from those of the target branch."
        ),
        "arm-without-floors": Entry(1, "Arm without floors", "The arm is measured, and no floors hold it."),
        "arm-not-gated": Entry(
            1, "Arm is not gated", "The arm has a report and no floors, and the policy wants every arm."
        ),
    },
    "Evidence": {
        "evidence-missing": Entry(
            1,
            "Evidence missing",
            "A run that the floors stand on is not in the evidence.",
            "Restore it from git, or move the bar:  eval-gate floor ARM --measure --write",
        ),
        "evidence-malformed": Entry(
            1,
            "Malformed evidence",
            "A line or file of evidence cannot be read, or a run is there twice.",
            "Restore it from git.",
        ),
        "evidence-contradicts": Entry(
            1,
            "Contradictory evidence",
            "A line of evidence is not what its own figures give, so it was edited.",
            "Restore it from git, or measure again.",
        ),
        "evidence-rewritten": Entry(
            1,
            "Rewritten evidence",
            "A line of evidence that the target branch has was changed or taken out.",
            "Restore it from the target branch.",
        ),
        "evidence-differs": Entry(
            1, "Other evidence", "The file is another report than the one that the floors stand on."
        ),
        "evidence-errored": Entry(1, "Errored evidence", "Queries of the run errored, or none was scored."),
        "evidence-dirty": Entry(
            1,
            "Evidence of a dirty tree",
            "The run was measured with uncommitted changes, so no commit says of what.",
        ),
        "evidence-resumed": Entry(1, "Resumed evidence", "The run was interrupted and resumed."),
        "evidence-cached": Entry(1, "Evidence from a cache", "The index of the run came from a cache."),
        "evidence-class-differs": Entry(
            1, "Evidence of another class", "The runs were measured in different classes of place."
        ),
        "evidence-task-differs": Entry(1, "Evidence of another task", "The runs measured different tasks."),
        "evidence-system-differs": Entry(
            1, "Evidence of another system", "The runs measured different systems."
        ),
        "evidence-corpus-size-differs": Entry(
            1, "Evidence of another size", "The corpus of the run is larger or smaller than the floors allow."
        ),
        "no-run": Entry(1, "No run", "There is no run to derive floors from."),
        "one-run": Entry(
            1, "One run alone", "Floors need two runs, so that what varies is seen.", "Measure once more."
        ),
    },
    "Gate: not comparable": {
        "query-set-differs": Entry(1, "Other queries", "Queries were added to the set or taken out."),
        "queries-differ": Entry(1, "Changed queries", "The text or the meaning of queries changed."),
        "judgements-differ": Entry(1, "Changed judgements", "Judgements were changed."),
        "split-differs": Entry(1, "Another split", "Another split of the set was measured."),
        "kind-differs": Entry(1, "Another kind", "The kind of the set changed."),
        "corpus-differs": Entry(1, "Changed corpus", "Documents came, went or were edited."),
        "corpus-size-differs": Entry(
            1, "Corpus outside its band", "The corpus drifted beyond the size that is allowed."
        ),
        "recipe-differs": Entry(
            1, "Changed recipe", "The recipe of the corpus changed, and its documents too."
        ),
        "timeline-differs": Entry(1, "Changed timeline", "The timeline of the set changed."),
        "links-differ": Entry(1, "Changed links", "The links of the set changed."),
        "concepts-differ": Entry(1, "Changed concepts", "The concepts of the set changed."),
        "limit-differs": Entry(1, "Another limit", "Another number of documents was asked for."),
        "filter-differs": Entry(1, "Another filter", "The arm filters in another way."),
        "scale-differs": Entry(1, "Another scale", "The set was scaled in another way."),
        "metric-definitions-differ": Entry(
            1, "Other definitions", "The measures are defined in another way."
        ),
        "headline-differs": Entry(
            1, "Another headline", "The set's headline is another measure than that of the floors."
        ),
        "metric-missing": Entry(
            1, "Measure missing", "The run does not hold a measure that the floors are about."
        ),
        "metric-invalid": Entry(
            1, "Invalid measure", "A value of a measure is not a number that it can have."
        ),
        "category-missing": Entry(
            1, "Category missing", "The run has no query of a category that the floors are about."
        ),
        "n-differs": Entry(
            1, "Another number of queries", "Another number of queries was scored than the floors are for."
        ),
        "class-differs": Entry(
            1, "Another class", "The run was measured in another class of place than the floors ask for."
        ),
        "commit-differs": Entry(
            1, "Another commit", "The run was measured at another commit than the one that is checked."
        ),
        "tree-dirty": Entry(
            1,
            "Dirty tree",
            "The run was measured with uncommitted changes.",
            "Commit, then measure again.",
        ),
        "tree-changed": Entry(
            1,
            "Changed tree",
            "Files changed after the run was measured.",
            "Commit, then measure again.",
        ),
        "tree-unseen": Entry(
            1,
            "Unseen tree",
            "Git does not say whether the tree is as it was measured: it failed, or took too long.",
            "See what  git status  says, and measure again.",
        ),
        "index-cached": Entry(
            1, "Index from a cache", "The index came from a cache, so it may be of another state."
        ),
        "repetitions-differ": Entry(
            1, "Other repetitions", "The run has another number of repetitions than the baseline."
        ),
        "latency-not-measurable": Entry(
            1, "Latency unknown", "The budget is about times that the run does not tell."
        ),
        "baseline-differs": Entry(1, "Another baseline", "The baseline is not the run that the floors name."),
    },
    "Gate: failed": {
        "floor-breached": Entry(1, "Floor breached", "A measure is below its bar."),
        "baseline-drop": Entry(
            1, "Drop below the baseline", "A measure fell further below the baseline than is allowed."
        ),
        "must-pass-lost": Entry(
            1, "Must-pass query lost", "A query that must pass is not answered any more."
        ),
        "latency-over-budget": Entry(1, "Too slow", "The 95th percentile of the times is over the budget."),
    },
    "Unchanged runs": {
        "measure-failed": Entry(3, "Measuring failed", "A run of the arm could not be measured."),
        "measure-misused": Entry(2, "Arm cannot be measured", "The arm or its set is wrong."),
        "changed-meanwhile": Entry(
            3,
            "Changed meanwhile",
            "Set, system or commit changed between the runs, so they do not show what chance does.",
            "Run it again, and change nothing meanwhile.",
        ),
        "no-query-scored": Entry(3, "No query scored", "No query was scored in every run."),
    },
    "Guard": {
        "guard-vacuous": Entry(
            1,
            "Nothing was looked at",
            "No judged document is a file of the repository, so the guard shows nothing.",
        ),
        "ground-truth-missing": Entry(
            1,
            "Judged file missing",
            "A judged path is not in the commit, so another clone does not have it.",
            "Commit the file, or judge what took its place.",
        ),
        "ground-truth-not-a-file": Entry(
            1, "Judged path is not a file", "A judged path is a folder, a symbolic link or a submodule."
        ),
    },
    "Promotion": {
        "already-default": Entry(1, "Already the default", "The arm is the default of its dataset."),
        "not-the-default": Entry(
            1, "Not the default", "The arm to be replaced is not the default of the dataset."
        ),
        "dataset-differs": Entry(2, "Different datasets", "The two arms are not measured on one dataset."),
        "rules-missing": Entry(2, "No rules", "The policy has no rules of promotion."),
        "rule-missing": Entry(
            2, "No rule", "The rules of promotion say nothing about the dataset or the arm."
        ),
        "promotion-mixed": Entry(
            1, "Mixed promotion", "The files say different things about which arm is the default."
        ),
        "endpoint-operator-only": Entry(
            1,
            "Endpoint of operators",
            "The evidence was measured against an endpoint that only operators can reach.",
        ),
        "evidence-uncommitted": Entry(1, "Uncommitted evidence", "The evidence is not in a commit."),
        "evidence-commit-differs": Entry(
            1, "Evidence of two commits", "The two sides were measured at different commits."
        ),
        "evidence-commit-unknown": Entry(
            1, "Evidence of an unknown commit", "The repository lacks the commit that was measured."
        ),
        "ci-run-missing": Entry(1, "No CI run", "The evidence names no CI run, or one that cannot be found."),
        "ci-run-twice": Entry(1, "CI run twice", "Two pieces of evidence come from one CI run."),
        "evidence-form-differs": Entry(
            1, "Evidence of two forms", "The pieces of evidence have different forms."
        ),
        "evidence-same-run": Entry(1, "Same run twice", "Two pieces of evidence are one run."),
        "evidence-side-missing": Entry(1, "Side missing", "The evidence holds one of the two arms alone."),
    },
    "Snapshots": {
        "repository-malformed": Entry(
            2,
            "Wrong name of a repository",
            "A repository is named by its owner and its name, with one slash between them.",
            "eval-tier snapshot OWNER/NAME",
        ),
        "api-malformed": Entry(
            2,
            "Wrong address of an API",
            "The address of a forge's API is https without user and password; http is for this machine alone.",
        ),
        "token-malformed": Entry(
            2, "Wrong token", "The token of the environment holds white space or signs that no token has."
        ),
        "snapshot-place-taken": Entry(
            2,
            "Place of the snapshot is taken",
            "What stands where the snapshot would be written is not a snapshot of this repository.",
            "Name another file with -o, or remove it.",
        ),
        "snapshot-edited": Entry(
            1,
            "Edited snapshot",
            "The digest in the snapshot is not that of what it holds, so it is not what the forge answered.",
        ),
        "repository-not-shown": Entry(
            3,
            "Repository not shown",
            "There is no such repository at the forge, or the token may not see it.",
            "Check the name, and set GITHUB_TOKEN to a token that may read the repository.",
        ),
        "branch-not-shown": Entry(
            3,
            "Branch not shown",
            "There is no such branch in the repository.",
            "Name another with --branch.",
        ),
        "token-refused": Entry(
            3,
            "Token refused",
            "The forge does not accept the token, or answers nobody without one.",
            "Set GITHUB_TOKEN or GH_TOKEN to a token that is valid.",
        ),
        "forge-unreachable": Entry(
            3,
            "Forge not reachable",
            "The forge gave no answer, or one that broke off. Nothing was written.",
            "Check the network and --api, and run the command again.",
        ),
        "forge-failed": Entry(
            3,
            "Forge failed",
            "The forge answered several times that it failed, which says nothing of its settings. Nothing was written.",
            "Run the command again later.",
        ),
        "forge-limited": Entry(
            3,
            "Forge takes no more questions",
            "The limit of questions is reached, and waiting for its end would take too long. Nothing was written.",
            "Run the command again after that time, or with a token of its own limit.",
        ),
        "forge-answer-odd": Entry(
            3,
            "Answer of another form",
            "The forge's answer is too large, or not of the form that its API documents. Nothing was written.",
            "Check --api: it names the API, not the site.",
        ),
        "redirect-refused": Entry(
            3,
            "Redirect refused",
            "The forge sends the question on to another host, which gets neither the question nor the token.",
            "If the host is right, name it with --api.",
        ),
    },
    "Counts": {
        "ties-reordered": Entry(
            0,
            "Ties reordered",
            "Answers in which documents of equal scores were put into the order of their ids, so that the same scores "
            "give the same ranks everywhere. Where it is most answers, the scores say little about the order.",
            "Let the backend give scores that differ, or none.",
        ),
    },
}

#: Every code.
REASONS: Final = MappingProxyType({code: entry for group in GROUPS.values() for code, entry in group.items()})

#: The page that explains them, from the top of the repository.
PAGE: Final = "docs/reasons.md"


def link(code: str) -> str:
    """Where a code is explained: `docs/reasons.md#floor-breached`."""
    return f"{PAGE}#{code}"
