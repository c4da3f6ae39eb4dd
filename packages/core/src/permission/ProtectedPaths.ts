/**
 * Finds protected paths, which ask although a wide rule allows them: files that programs or agents obey ask before an
 * edit, files that hold secrets ask before they are read or edited. A rule allows one only if it names it. Pure. Spec:
 * PP-1..PP-7.
 */
import { instructionNames } from "../context/InstructionDiscovery.ts"
import { literal } from "../domain/Rule.ts"

export interface Guard {
  /** The path segment as written. */
  readonly segment: string
  /** The reason, as the end of a sentence about the segment. */
  readonly why: string
  /** Whether a segment of a rule's pattern names it. Both are compared folded. */
  readonly named: (pattern: string) => boolean
}

const obeyed = "programs or agents obey what it says"
const secret = "it may hold secrets"

const words = (...lines: ReadonlyArray<string>) => lines.flatMap((line) => line.split(" "))

const obeyedNames: ReadonlySet<string> = new Set(
  [
    ...instructionNames,
    ...words(
      // Version control. A file `HEAD` can make a folder a repository, whose configuration Git obeys.
      ".git git~1 .hg .svn .jj .gitconfig .hgrc .gitmodules .gitattributes HEAD",
      // Hooks, editors, environments.
      ".husky .vscode .idea .zed .devcontainer .envrc .direnv .mise.toml mise.toml .pre-commit-config.yaml",
      "lefthook.yml lefthook.yaml lefthook.toml .lefthook.yml .lefthook.yaml .lefthook.toml",
      ".config .vimrc .exrc .nvimrc .gdbinit .lldbinit .tmux.conf .editrc .inputrc .nvim.lua .lvimrc .emacs .dir-locals.el",
      // Package managers: these files select programs, registries and scripts.
      ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .pnp.cjs .pypirc .curlrc .wgetrc",
      ".cargo .mvn .bundle bunfig.toml .rspec .pylintrc",
      // Start files of shells and interpreters.
      ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .login .logout",
      ".zshrc .zshenv .zprofile .zlogin .zlogout .xprofile .xinitrc .cshrc .tcshrc .kshrc .mkshrc",
      ".pythonrc .pythonrc.py .irbrc .pryrc .Rprofile",
      // Agents.
      "AGENTS.override.md AGENT.md CLAUDE.local.md GEMINI.md SKILL.md copilot-instructions.md .mcp.json",
      ".daybook .agents .claude .codex .cursor .cursorrules .clinerules .windsurfrules .gemini .opencode",
      ".aider.conf.yml .amazonq .continue .crush .goosehints .junie .kiro .qwen .roo .roorules .windsurf",
      "CRUSH.md QWEN.md WARP.md"
    )
  ].map((name) => name.toLowerCase())
)

/** Folders and files with secret content. */
const secretNames: ReadonlySet<string> = new Set(
  words(
    ".ssh .gnupg .aws .azure .gcloud .kube .docker .password-store .vault-token .envrc .direnv",
    ".netrc _netrc .git-credentials .npmrc .pypirc .pgpass .my.cnf .htpasswd .dockercfg credentials.json credentials.toml"
  )
)

/** Families of secret files; a rule must contain the marker that their names share. */
const secretFamilies: ReadonlyArray<{ readonly marker: string; readonly matches: RegExp }> = [
  // Templates of such a file do not hold secrets.
  { marker: ".env", matches: /^\.+env(?!\.(?:example|sample|template|dist)$)|\.env$/ },
  ...words("pem key p12 pfx pkcs12 jks keystore ppk kdbx tfvars tfstate").map((suffix) => ({
    marker: `.${suffix}`,
    matches: new RegExp(`\\.${suffix}$`)
  })),
  // An SSH private key; `.pub` is a public key, and names with another suffix are source code.
  { marker: "id_", matches: /^id_(?:[a-z0-9_-]+|(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?[._-](?!pub$).*)$/ }
]

/** Folds a segment as the least strict file system does: case, composition, invisible characters, final dots. */
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

const reading: ReadonlySet<string> = new Set(["read", "grep"])

/** The guards of a path against an action. The part of a reference before its colon is a segment too. */
export const guardsOf = (permission: string, path: string): ReadonlyArray<Guard> => {
  const changes = permission === "edit"
  return changes || reading.has(permission)
    ? path.split(/[/\\:]/).flatMap((segment) => guardOf(segment, changes) ?? [])
    : []
}

/** Replaces a wildcard; no file name contains it. */
const wildcard = "\0"

/** Whether a rule's pattern names every guard in a resource: it is the resource, or each guard matches a segment. */
export const namesGuards = (pattern: string, resource: string, guards: ReadonlyArray<Guard>): boolean => {
  if (guards.length === 0 || pattern === literal(resource)) return true
  const segments = pattern
    .replaceAll(/\\([*?\\])|[*?]/g, (_, escaped: string | undefined) => escaped ?? wildcard)
    .split(/[/\\:]/)
    .map(fold)
  return guards.every(({ named }) => segments.some(named))
}

export const describeGuards = (guards: ReadonlyArray<Guard>): string =>
  [...new Map(guards.map((guard) => [guard.segment, guard])).values()]
    .map(({ segment, why }) => `${JSON.stringify(segment)} is protected: ${why}.`)
    .join(" ")
