/** Commands of the server that code actions and lenses name: the guided ones are ours, the rest run as they are. */

import { diskFolders } from "./folders";
import type { Acts } from "./acts";
import { type Chosen, promptValue } from "./choices";
import type { Api } from "./api";

type Argument = Record<string, unknown>;

/** Every failure is shown once and never thrown, since the editor would show it a second time. */
export function router(acts: () => Acts, api: () => Api) {
  return async (name: string, argument: Argument, run: (argument: Argument) => Promise<unknown>): Promise<unknown> => {
    const folder = typeof argument.folder === "string" ? argument.folder : (diskFolders()[0]?.uri.toString() ?? "");
    const named = chosenOf(argument, folder);
    switch (name) {
      case "decisions.record":
        return acts().recordFor(argument.files as string[], folder, promptValue(argument.title), promptValue(argument.rationale));
      case "decisions.invalidate":
        return named && acts().invalidate(named);
      case "decisions.supersede":
        return named && acts().supersede(named);
      case "decisions.amend":
        return named && acts().amend(named);
      case "decisions.diff":
        return named && acts().diff(named);
      case "decisions.acknowledge":
        return named && acts().acknowledge(named);
      case "decisions.ask":
        return asked(acts(), argument, folder, named, run);
      default:
        // A restore keeps its own fields: the revisions and the commit that the user saw.
        return api().attempt(() => run(argument));
    }
  };
}

async function asked(acts: Acts, argument: Argument, folder: string, named: Chosen | undefined, run: (argument: Argument) => Promise<unknown>): Promise<unknown> {
  if (argument.act === "show" && named) {
    return acts.show(named);
  }
  if (argument.act === "show" && typeof argument.path === "string") {
    return acts.showGoverning(argument.path, folder);
  }
  if (argument.act === "diff" && named) {
    return acts.diff(named);
  }
  return run(argument);
}

function chosenOf(argument: Argument, folder: string): Chosen | undefined {
  const ids = argument.ids as string[] | undefined;
  const id = typeof argument.id === "string" ? argument.id : ids?.[0];
  if (!id) {
    return undefined;
  }
  const expect = argument.expect;
  const revision = typeof expect === "number" ? expect : (expect as Record<string, number> | undefined)?.[id];
  return { id, folder, revision };
}
