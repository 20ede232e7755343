/* Opens each path of standard input in a child of its own, and prints a line for each: "ok", "error<TAB>text",
   "signal<TAB>number" or "status<TAB>number". What a damaged file makes of a child ends with the child. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main (void)
{
  static char path[8192], text[8192];
  while (fgets (path, sizeof path, stdin) != NULL)
    {
      int ends[2], status = 0;
      ssize_t length = 0, got;
      path[strcspn (path, "\n")] = 0;
      if (pipe (ends) != 0)
        return 1;
      fflush (stdout);
      pid_t child = fork ();
      if (child == 0)
        {
          struct rlimit none = { 0, 0 };
          setrlimit (RLIMIT_CORE, &none);
          setrlimit (RLIMIT_FSIZE, &none);
          alarm (5);
          close (ends[0]);
          const char *said = dlopen (path, RTLD_NOW) != NULL ? "ok" : dlerror ();
          if (strcmp (said, "ok") != 0)
            dprintf (ends[1], "error\t");
          dprintf (ends[1], "%s", said);
          _exit (0);
        }
      close (ends[1]);
      while (length < (ssize_t) sizeof text - 1
             && (got = read (ends[0], text + length, sizeof text - 1 - length)) > 0)
        length += got;
      text[length] = 0;
      close (ends[0]);
      waitpid (child, &status, 0);
      for (char *at = text; *at; at++)
        if (*at == '\n')
          *at = ' ';
      if (WIFSIGNALED (status))
        printf ("signal\t%d\n", WTERMSIG (status));
      else if (WEXITSTATUS (status) != 0)
        printf ("status\t%d\n", WEXITSTATUS (status));
      else
        printf ("%s\n", text);
    }
  return 0;
}
