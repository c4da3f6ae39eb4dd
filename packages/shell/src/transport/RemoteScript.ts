/** Brings a script to a remote `sh` unchanged. Pure. Spec: SL-84 in specs/shell.md. */

/** What single quotes do not keep in every login shell: fish reads backslashes in them, csh `!` and line breaks. */
const unsafe = /['\\!\r\n]/g

const octal = (character: string): string => `\\0${character.charCodeAt(0).toString(8).padStart(3, "0")}`

/**
 * A command that makes any login shell run the script with `sh -c`: an SSH server gives commands to the user's shell. The
 * script is encoded for `printf %b`, so that a shell with other rules of quoting cannot change it.
 */
export const forLoginShell = (script: string): string =>
  `exec sh -c 'exec sh -c "$(printf %b "$1")"' sh '${script.replaceAll(unsafe, octal)}'`
