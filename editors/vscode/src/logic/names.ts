/** Names that the manifest, the server and the code share. All of ours begin with `nmLsp`. */

export const SECTION = "nmLsp";
export const PATH_SETTING = "nmLsp.server.path";
export const PACKAGE_SETTING = "nmLsp.server.package";

/** The prefix of the server's advertised commands, which the editor registers for all extensions alike. */
export const COMMAND_PREFIX = "nmLsp.server";

export const SCHEME = "nmlsp";
