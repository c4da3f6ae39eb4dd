/**
 * Paths that ask although a wide rule allows them: files that programs or agents obey ask before an edit, files that
 * hold secrets ask before they are read or edited. A rule allows one only when it names it. Pure. Spec: PP-1..PP-6.
 */
import { instructionNames } from "../context/sources/InstructionFiles.ts"
import { literal } from "./Rule.ts"

/** Why one segment of a path is protected. */
export interface Guard {
  /** The segment of the path, as it is written there. */
  readonly segment: string
  /** Why it asks, as the end of a sentence about the segment. */
  readonly why: string
  /** Whether a segment of a rule's pattern names it. Both are folded. */
  readonly named: (pattern: string) => boolean
}

const obeyed = "programs or agents obey what it says"
const secret = "it may hold secrets"

/** The words of some lines. */
const words = (...lines: ReadonlyArray<string>) => lines.flatMap((line) => line.split(" "))

/** Folders and files whose content runs commands, configures what runs them, or instructs agents. */
const obeyedNames: ReadonlySet<string> = new Set(
  [
    ...instructionNames,
    ...words(
      // Version control. A file `HEAD` is what makes a folder a repository, whose configuration Git obeys.
      ".git .hg .svn .jj .gitconfig .gitmodules .gitattributes HEAD",
      // Hooks, editors, environments.
      ".husky .vscode .idea .devcontainer .envrc .direnv .pre-commit-config.yaml lefthook.yml",
      ".config .vimrc .exrc .nvimrc .gdbinit .lldbinit .tmux.conf .editrc .inputrc",
      // Package managers: they choose programs, registries and scripts.
      ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .pnp.cjs .pypirc .curlrc .wgetrc",
      // Start files of shells and interpreters.
      ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .login .logout",
      ".zshrc .zshenv .zprofile .zlogin .zlogout .cshrc .tcshrc .kshrc .mkshrc",
      ".pythonrc .pythonrc.py .irbrc .pryrc .Rprofile",
      // Agents.
      "AGENTS.override.md AGENT.md CLAUDE.local.md GEMINI.md SKILL.md copilot-instructions.md .mcp.json",
      ".daybook .agents .claude .codex .cursor .cursorrules .clinerules .windsurfrules .gemini .opencode"
    )
  ].map((name) => name.toLowerCase())
)

/** Folders and files whose content is there to be kept secret. */
const secretNames: ReadonlySet<string> = new Set(
  words(
    ".ssh .gnupg .aws .azure .gcloud .kube .docker .password-store .vault-token .envrc .direnv",
    ".netrc _netrc .git-credentials .npmrc .pypirc .pgpass .my.cnf .htpasswd .dockercfg credentials.json credentials.toml"
  )
)

/** Families of such files: what their names have in common is what a rule has to hold. */
const secretFamilies: ReadonlyArray<{ readonly marker: string; readonly matches: RegExp }> = [
  // Templates of such a file are there to be read.
  { marker: ".env", matches: /^\.+env(?!\.(?:example|sample|template|dist)$)|\.env$/ },
  ...words("pem key p12 pfx pkcs12 jks keystore ppk kdbx tfvars tfstate").map((suffix) => ({
    marker: `.${suffix}`,
    matches: new RegExp(`\\.${suffix}$`)
  })),
  // A private key of SSH; `.pub` is its public half, and other files with a suffix are source code.
  { marker: "id_", matches: /^id_(?:[a-z0-9_-]+|(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?[._-](?!pub$).*)$/ }
]

/**
 * A segment as the least strict file system compares it: without regard to case, to how characters are composed, to
 * characters that are not shown, and to dots and spaces at the end.
 */
const fold = (segment: string): string =>
  segment
    .normalize("NFKC")
    .replaceAll(/\p{Cf}/gu, "")
    .toUpperCase()
    .toLowerCase()
    .replace(/[. ]+$/, "")

const guardOf = (segment: string, changes: boolean): Guard | undefined => {
  const name = fold(segment)
  const exactly = (pattern: string) => pattern === name
  if (secretNames.has(name)) return { segment, why: secret, named: exactly }
  const family = secretFamilies.find(({ matches }) => matches.test(name))
  if (family !== undefined) return { segment, why: secret, named: (pattern) => pattern.includes(family.marker) }
  return changes && obeyedNames.has(name) ? { segment, why: obeyed, named: exactly } : undefined
}

/** Permissions that read what they name. */
const reading: ReadonlySet<string> = new Set(["read", "grep"])

/** What protects a path from an action. The part of a reference before its colon is a segment too. */
export const guardsOf = (permission: string, path: string): ReadonlyArray<Guard> => {
  const changes = permission === "edit"
  return changes || reading.has(permission)
    ? path.split(/[/\\:]/).flatMap((segment) => guardOf(segment, changes) ?? [])
    : []
}

/** Stands for a wildcard: no name holds it. */
const wildcard = "\0"

/** Whether a rule's pattern for a resource names all that is protected: it is the resource, or each is a part of it. */
export const namesGuards = (pattern: string, resource: string, guards: ReadonlyArray<Guard>): boolean => {
  if (guards.length === 0 || pattern === literal(resource)) return true
  const segments = pattern
    .replaceAll(/\\([*?\\])|[*?]/g, (_, escaped: string | undefined) => escaped ?? wildcard)
    .split(/[/\\:]/)
    .map(fold)
  return guards.every(({ named }) => segments.some(named))
}

/** The protection as a sentence for the person who is asked. */
export const describeGuards = (guards: ReadonlyArray<Guard>): string =>
  [...new Map(guards.map((guard) => [guard.segment, guard])).values()]
    .map(({ segment, why }) => `${JSON.stringify(segment)} is protected: ${why}.`)
    .join(" ")
