/* Works off the steps of a graph inside a program that has no start-up code of its own.
   A step is a line of the file argv[1]: "caller<TAB>offset<TAB>flags<TAB>name"; an empty caller is the program, and the
   offset is that of the code which calls dlopen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wanted { const char *path; unsigned long base; int found; };

static int find_base (struct dl_phdr_info *info, size_t size, void *data)
{
  struct wanted *wanted = data;
  char real[PATH_MAX];
  const char *name = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
  if (realpath (name, real) == NULL || strcmp (real, wanted->path) != 0)
    return 0;
  wanted->base = info->dlpi_addr;
  wanted->found = 1;
  return 1;
}

static int print_name (struct dl_phdr_info *info, size_t size, void *data)
{
  dprintf (1, "object\t%s\n", info->dlpi_name);
  return 0;
}

typedef void *(*opener) (const char *, int);

void oracle_main (long *stack)
{
  char **argv = (char **) (stack + 1), line[16384], program[PATH_MAX];
  FILE *steps = fopen (argv[1], "r");
  int number = 0;
  if (steps == NULL || realpath ("/proc/self/exe", program) == NULL)
    _exit (99);
  dl_iterate_phdr (print_name, NULL);
  while (fgets (line, sizeof line, steps) != NULL)
    {
      char *rest = line, *caller = strsep (&rest, "\t"), *offset = strsep (&rest, "\t"),
           *flags = strsep (&rest, "\t"), *name = strsep (&rest, "\n");
      struct wanted wanted = { *caller ? caller : program, 0, 0 };
      dl_iterate_phdr (find_base, &wanted);
      if (! wanted.found)
        {
          wanted.path = program;
          offset = "1024";
          dl_iterate_phdr (find_base, &wanted);
        }
      dprintf (2, "\nORACLE step %d\n", ++number);
      void *handle = ((opener) (wanted.base + atol (offset))) (name, atoi (flags));
      dprintf (2, "\nORACLE between\n");
      dprintf (1, "step\t%s\n", handle != NULL ? "" : dlerror ());
      dl_iterate_phdr (print_name, NULL);
    }
  dprintf (1, "maps\n");
  FILE *maps = fopen ("/proc/self/maps", "r");
  while (fgets (line, sizeof line, maps) != NULL)
    if (strchr (line, '/') != NULL)
      dprintf (1, "%s", strchr (line, '/'));
  dprintf (1, "end\n");
  _exit (0);
}
